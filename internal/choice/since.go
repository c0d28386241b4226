package choice

import (
	"hash/maphash"

	"optimist/internal/doc"
)

// Since has the numbers of a revision that a client has seen, and the differences from an older revision that an answer has shown the
// client later. If the difference is large, it has a part of it.
type Since struct {
	Newer, Older doc.Numbers

	more, less []mark // items that the newer revision holds more often, or less often, than the older one, with their count in the newer one
	made       []mark // the paths of values that only the newer revision holds
}

// mark is the hash of an item or of a path.
type mark struct {
	hash uint64
	n    int
}

// maxSinceBytes bounds the documents that NewSince compares, in bytes, because it runs for each hit of a search, and under a lock.
const maxSinceBytes = 64 << 10

// maxMarks is how many differences of each kind a Since has at most.
const maxMarks = 8

// NewSince compares two revisions of a document. It is nil if they can't be compared.
func NewSince(newer, older doc.Revision) *Since {
	if len(newer.Source)+len(older.Source) > maxSinceBytes {
		return nil
	}
	now, ok := contentOf(newer.Source)
	was, wasOK := contentOf(older.Source)
	if !ok || !wasOK {
		return nil
	}
	s := &Since{Newer: newer.Numbers, Older: older.Numbers}
	paths := was.paths()
	for i, n := range now {
		switch {
		case n <= was[i]:
		case i.inList:
			s.more = note(s.more, i.hash(), n)
		case !paths[i.path]:
			s.made = note(s.made, i.path, 1)
		}
	}
	for i, n := range was {
		if now[i] < n {
			s.less = note(s.less, i.hash(), now[i])
		}
	}
	return s
}

func note(marks []mark, hash uint64, n int) []mark {
	if len(marks) == maxMarks {
		return marks
	}
	return append(marks, mark{hash, n})
}

// IsUndoneBy reports whether a document takes back something by which the newer revision differs from the older one: it lacks an item that
// came, or holds one that went. Then it was made from the older revision, or the client takes that back on purpose. A value that is neither
// the newer nor the older one shows nothing.
func (s *Since) IsUndoneBy(sent []byte) bool {
	if s == nil || len(sent) > maxSinceBytes {
		return false
	}
	c, ok := contentOf(sent)
	if !ok {
		return false
	}
	holds, paths := make(map[uint64]int, len(c)), c.paths()
	for i, n := range c {
		holds[i.hash()] = n
	}
	for _, m := range s.more {
		if holds[m.hash] < m.n {
			return true
		}
	}
	for _, m := range s.less {
		if holds[m.hash] > m.n {
			return true
		}
	}
	for _, m := range s.made {
		if !paths[m.hash] {
			return true
		}
	}
	return false
}

func (i item) hash() uint64 { return maphash.Comparable(seed, i) }

// paths are the paths of values that are in no list.
func (c content) paths() map[uint64]bool {
	paths := make(map[uint64]bool, len(c))
	for i := range c {
		if !i.inList {
			paths[i.path] = true
		}
	}
	return paths
}
