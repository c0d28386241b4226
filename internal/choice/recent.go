package choice

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
)

// After a start, a client of an inferred session may write from a read from before, or from a later read of any client of the session.
// The bodies from before aren't known. The content of the write decides: a document from before can't hold later additions, and a write
// must not undo these.

const (
	maxComparedBytes = 1 << 20
	// leastText and leastItem are how long a text, and one in a list, is that two clients don't write by chance, with its quotes.
	leastText = 16
	leastItem = 8
)

// Recent reports whether sent was made from something that was seen since the start. seen are revisions of that time, oldest first. It is
// false for what can't be told. It doesn't tell from which of them: a write may hold everything of a revision that is older than its base.
// A member with the name marks isn't the client's, which may leave it out.
func Recent(sent []byte, seen [][]byte, marks string) bool {
	if sent == nil || len(seen) == 0 {
		return false
	}
	size := len(sent)
	for _, b := range seen {
		size += len(b)
	}
	if size > maxComparedBytes {
		return false
	}
	root, ok := parse(sent)
	s := content{}
	if !ok || !s.add(0, root) {
		return false
	}
	if object, _ := root.(map[string]any); object[marks] != nil { // its client kept them
		marks = ""
	}
	first, _ := contentWithout(marks, seen[0])
	for i := len(seen) - 1; i >= 0; i-- {
		if c, ok := contentWithout(marks, seen[i]); ok && (s.extends(c) || s.sharesNew(c, first)) {
			return true
		}
	}
	return false
}

// content is what a document holds: a path and its value for each scalar, and a path with each value of a list, at whatever place. The
// value is how often it is there.
type content map[item]int

// item is known by the hash of its path: the paths themselves would be as long together as the product of a document's depth and width.
type item struct {
	path   uint64
	value  string
	inList bool
}

// seed makes hashes that no client can foresee.
var seed = maphash.MakeSeed()

// step is the path to a member of what is at a path.
type step struct {
	path uint64
	key  string
}

func contentOf(data []byte) (c content, ok bool) { return contentWithout("", data) }

// contentWithout is contentOf for a document without one of its members; "": with all of them.
func contentWithout(member string, data []byte) (c content, ok bool) {
	root, ok := parse(data)
	if object, is := root.(map[string]any); is && member != "" {
		delete(object, member)
	}
	c = content{}
	return c, ok && c.add(0, root)
}

func parse(data []byte) (root any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&root)
	return root, err == nil
}

func (c content) add(path uint64, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, in := range v {
			if !c.add(maphash.Comparable(seed, step{path, k}), in) {
				return false
			}
		}
		return true
	case []any:
		for _, in := range v {
			text, err := json.Marshal(in)
			if err != nil {
				return false
			}
			c[item{path, string(text), true}]++
		}
		return true
	}
	text, err := json.Marshal(v)
	c[item{path: path, value: string(text)}]++
	return err == nil
}

// extends reports whether c holds everything in was, and more: then it undoes nothing. A value may differ if the document has grown, too:
// clients that change it together all add to it, and additions from before the start are there.
func (c content) extends(was content) bool {
	paths := c.paths()
	changed, wasThere := false, make(map[uint64]bool, len(was))
	for i, n := range was {
		switch {
		case c[i] >= n:
		case i.inList || !paths[i.path]:
			return false
		default:
			changed = true
		}
		if !i.inList {
			wasThere[i.path] = true
		}
	}
	grown := false
	for i, n := range c {
		grown = grown || i.inList && was[i] < n || !i.inList && !wasThere[i.path]
	}
	return grown || !changed
}

// sharesNew reports whether c holds something that now holds, and first, which is older, doesn't, and that isn't there by chance.
func (c content) sharesNew(now, first content) bool {
	for i, n := range now {
		if c[i] >= n && first[i] < n && (len(i.value) >= leastText || i.inList && len(i.value) >= leastItem) {
			return true
		}
	}
	return false
}
