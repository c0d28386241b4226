package merge

import (
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// sight is whether the client seems to have seen what others have put in since the base, although that is a guess.
type sight uint8

// The kinds of sight. All lists and sums of a document are merged by the same one.
const (
	unjudged   sight = iota
	unclear          // it may have seen it or not: others have moved numbers, or have put in nothing, or one entry that the client has, too
	sawNothing       // others have put in entries or members, and the client has none of these: nothing of its change is an echo
	sawSome          // it has several new entries of a list that others have, too, or one that it can't have made up by itself
)

// sight judges it once for the whole document. It needs the workspace's table.
func (r *run) sight() sight {
	if r.seen == unjudged {
		var c common
		r.share(&c, r.base.Root(), r.sent.Root(), r.cur.Root())
		r.seen = c.sight()
	}
	return r.seen
}

// common is what the client and others have both put in since the base, and what only others have.
type common struct {
	some   bool // something of both
	echo   bool // so much of one list that two clients haven't put it in independently
	others bool // something that only others have
}

func (c *common) sight() sight {
	switch {
	case c.echo:
		return sawSome
	case c.others && !c.some:
		return sawNothing
	}
	return unclear
}

// share compares what the client and others have made of a value of the base, which may be missing.
func (r *run) share(in *common, b, s, c tree.Value) {
	k := c.Kind()
	if !k.IsContainer() || s.Kind() != k || b.SameBytes(c) {
		return
	}
	if b.Kind() != k {
		b = tree.Value{}
	}
	if k == tree.Array {
		r.shareList(in, b, s, c)
		return
	}
	base, sent := b.Finder(), s.Finder()
	for m := c.First(); m.Exists(); m = m.Next() {
		switch bm, sm := base.Like(m), sent.Like(m); {
		case !bm.Exists() && !sm.Exists():
			in.others = in.others || !r.parts
		case r.parts && bm.SameBytes(sm): // the client hasn't sent it
		case !bm.Exists() && sm.Equal(m):
			in.some = true
		case sm.Exists():
			r.share(in, bm, sm, m)
		}
	}
}

// shareList compares what the client and others have put into a list. A changed entry looks like two: one that was put in, and one that was
// taken out. Others may change it back, so it doesn't show what the client has seen. Only entries that make the list longer count, and
// entries with new ids.
func (r *run) shareList(in *common, b, s, c tree.Value) {
	mark, ids := r.Mark(), &r.Table
	defer r.Cut(mark)
	base, sent, cur := r.Elements(b), r.Elements(s), r.Elements(c)
	total := len(base) + len(sent) + len(cur)
	ids.Reset(total)
	mine, theirs := r.Ints.Alloc(total), r.Ints.Alloc(total) // how many more of each than the base has
	for _, e := range base {
		id := ids.Number(e)
		mine[id]--
		theirs[id]--
	}
	for _, e := range sent {
		mine[ids.Number(e)]++
	}
	for _, e := range cur {
		theirs[ids.Number(e)]++
	}
	both := 0
	for _, e := range cur {
		id := ids.Number(e)
		n := int(min(mine[id], theirs[id]))
		if n <= 0 {
			continue
		}
		mine[id] = 0
		if both < maxIdentities && isMadeUp(e, base) {
			in.echo = true
		}
		both += n
	}
	longer := len(cur) - len(base)
	in.some = in.some || both > 0
	in.echo = in.echo || min(both, longer, len(sent)-len(base)) > maxShared
	in.others = in.others || longer > both
}

// maxShared is how many equal entries two clients may put into one list independently.
const maxShared = 1

// madeUp are the names under which a program makes up an id for a new entry.
var madeUp = []string{"id", "_id", "uuid", "guid", "key"}

// isMadeUp reports whether a client has made up something for an entry that no entry of the base has: an id, or a time that it has taken
// from its clock. Two clients don't make up the same.
func isMadeUp(e tree.Value, base []tree.Value) bool {
	if e.Kind() != tree.Object {
		return false
	}
	for _, name := range madeUp {
		if id := diff.KeyOf(e, name); id.Exists() {
			return isNew(id, base)
		}
	}
	for m := e.First(); m.Exists(); m = m.Next() {
		if part := m.PartOfSecond(); isOfClock(part) {
			fine := len(part) > tree.Milliseconds && isOfClock(part[tree.Milliseconds:])
			return isNew(m, base) && (fine || !saysAgain(e, m, base))
		}
	}
	return false
}

// saysAgain reports whether an entry of the base says the same as e, apart from e's time. Two clients may well say that in one millisecond:
// a parcel was scanned, and scanned again.
func saysAgain(e, time tree.Value, base []tree.Value) bool {
	return slices.ContainsFunc(base, func(o tree.Value) bool {
		members := o.Finder()
		for m := e.First(); m.Exists(); m = m.Next() {
			if m != time && !members.Like(m).Equal(m) {
				return false
			}
		}
		return true
	})
}

// isNew reports whether no entry of the base has the member.
func isNew(m tree.Value, base []tree.Value) bool {
	return !slices.ContainsFunc(base, func(o tree.Value) bool {
		members := o.Finder()
		return members.Like(m).Equal(m)
	})
}

// isOfClock reports whether a part of a second comes from a clock. Some programs write the beginning of a day with zeros, and its end with
// nines.
func isOfClock(digits []byte) bool {
	return slices.ContainsFunc(digits, func(c byte) bool { return c != '0' && c != '9' })
}
