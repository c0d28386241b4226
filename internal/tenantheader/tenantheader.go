// Package tenantheader finds header fields that seem to choose a tenant, or a cluster, though the configuration doesn't name
// them. Depending on such a field's value, the same document has one revision, then another, then the first again.
//
// It guesses from the reads that pass, and decides nothing. It misses a field unless two tenants have documents of the same name,
// which clients with the same credentials read.
package tenantheader

import (
	"hash/maphash"
	"strings"
	"sync"

	"optimist/internal/doc"
	"optimist/internal/hook"
	"optimist/internal/wire"
)

// What is kept is bounded, whatever clients send: about 100 KiB.
const (
	places  = 256 // documents that are looked at, at a time
	stays   = 64  // how many reads of other documents in its place a document stays for
	most    = 8   // fields of a request that are looked at
	longest = 256 // of a field's value, in bytes: what is longer isn't looked at
	names   = 32  // fields that are suspected, at a time; and how many are told at all
	needed  = 5   // how often a field has to tell two revisions apart before it is told
	against = 4   // how many of these one read that speaks against it takes away
)

// Finder looks at reads. It is safe for concurrent use; make it with New.
type Finder struct {
	// Found is called once for a field that seems to choose a tenant, with its name in small letters. It is called with the Finder's lock
	// held. Set it before the Finder is used.
	Found hook.Func1[string]

	seed     maphash.Seed
	mu       sync.Mutex
	places   [places]place
	suspects map[string]*suspect
	reported map[string]bool
}

// New makes a Finder.
func New() *Finder {
	return &Finder{seed: maphash.MakeSeed(), suspects: map[string]*suspect{}, reported: map[string]bool{}}
}

// place is a document that is looked at, with the newest revision that was seen of it, and the last older one. A document that isn't there
// is an older one of any.
type place struct {
	key          uint64
	misses       int
	newest, last state
	atLast       bool // the latest read saw last
}

// state is what a read saw, and with which fields. The zero value is none.
type state struct {
	doc.Numbers
	seen   bool
	fields [most]mark
}

// mark stands for a field: 0 is none.
type mark struct{ name, value uint64 }

// suspect is how often a field told two revisions apart, and how often it didn't.
type suspect struct{ speaks, against int }

// Saw looks at a read of a document by its id. at is what it saw; the zero value says that the document isn't there. credentials are the
// client's, and fields those of the request that neither the configuration nor optimist itself knows. Saw doesn't wait: where another read
// is looked at, this one isn't.
func (f *Finder) Saw(credentials []byte, ref *doc.Ref, at doc.Numbers, fields []wire.Field) {
	if len(fields) > most || !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	now := state{Numbers: at, seen: true}
	for i, field := range fields {
		if len(field.Value) <= longest {
			now.fields[i] = mark{f.nameOf(field.Name), maphash.Bytes(f.seed, field.Value) | 1}
		}
	}
	p := f.placeOf(credentials, ref)
	switch {
	case p == nil:
	case p.newest.seen && p.newest.Numbers == at:
		if p.atLast {
			f.compare(&now, &p.newest, &p.last, fields)
		}
		p.newest, p.atLast = now, false
	case p.last.seen && p.last.Numbers == at:
		if !p.atLast {
			f.compare(&now, &p.last, &p.newest, fields)
		}
		p.last, p.atLast = now, true
	case !p.newest.seen || newer(at, p.newest.Numbers):
		p.newest, p.last, p.atLast = now, state{}, false
	default:
		p.last, p.atLast = now, true
	}
}

// newer reports whether a document's numbers come after others.
func newer(a, b doc.Numbers) bool {
	return a.PrimaryTerm > b.PrimaryTerm || a.PrimaryTerm == b.PrimaryTerm && a.SeqNo > b.SeqNo
}

// placeOf is the document's place, or nil where another document stays there.
func (f *Finder) placeOf(credentials []byte, ref *doc.Ref) *place {
	var h maphash.Hash
	h.SetSeed(f.seed)
	_, _ = h.Write(credentials) // it never fails
	for _, s := range [...]string{ref.Index, ref.Routing, ref.ID} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	key := h.Sum64()
	p := &f.places[key%places]
	if p.key != key {
		if p.misses++; p.newest.seen && p.misses < stays {
			return nil
		}
		*p = place{key: key}
	}
	p.misses = 0
	return p
}

// nameOf is a hash of a field's name in any spelling.
func (f *Finder) nameOf(name []byte) uint64 {
	var room [128]byte
	low := append(room[:0], name[:min(len(name), len(room))]...)
	for i, c := range low {
		if c >= 'A' && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return maphash.Bytes(f.seed, low) | 1
}

// compare looks at the fields of a read that saw what was seen before (same), after another one saw something else (other).
func (f *Finder) compare(now, same, other *state, fields []wire.Field) {
	for i, field := range fields {
		m := now.fields[i]
		if m.name == 0 {
			continue
		}
		switch tells := !other.has(m); {
		case tells && same.has(m):
			f.suspect(field.Name, 1, 0)
		case !tells:
			f.suspect(field.Name, 0, 1)
		}
	}
}

func (s *state) has(m mark) bool {
	for _, have := range s.fields {
		if have == m {
			return true
		}
	}
	return false
}

// suspect counts for and against a field. What speaks against one that nothing has spoken for isn't kept.
func (f *Finder) suspect(field []byte, speaks, against int) {
	name := strings.ToLower(string(field))
	s := f.suspects[name]
	if s == nil {
		if speaks == 0 || f.reported[name] || len(f.reported) == names {
			return
		}
		f.makeRoom()
		s = &suspect{}
		f.suspects[name] = s
	}
	s.speaks, s.against = s.speaks+speaks, s.against+against
	if s.convinces() {
		delete(f.suspects, name)
		f.reported[name] = true
		f.Found.Call(name)
	}
}

func (s *suspect) convinces() bool { return s.speaks >= needed && s.speaks > against*s.against }

// makeRoom forgets the field for which the least speaks, if there are too many.
func (f *Finder) makeRoom() {
	if len(f.suspects) < names {
		return
	}
	least := ""
	for name, s := range f.suspects {
		if least == "" || s.speaks < f.suspects[least].speaks {
			least = name
		}
	}
	delete(f.suspects, least)
}
