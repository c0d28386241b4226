package choice

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
)

// After a start, a client of an inferred session may write from a read from before the start, or from a later read of any client of the
// session. optimist doesn't know the bodies of the reads from before. So the content of the write decides: a document from before the start
// can't hold later additions, and a write must not undo these.

const (
	maxComparedBytes = 1 << 20
	// leastText is the length of a text, with its quotes, from which on two clients don't write the same one by chance. leastItem is that for
	// a text in a list.
	leastText = 16
	leastItem = 8
)

// Recent reports whether a write was certainly made from a revision that clients have seen since the start. seen has some of these
// revisions, oldest first. It doesn't tell from which of them: a write may hold everything of a revision that is older than its base. For a
// part, the document counts that it makes of a revision. marks is the name of the member with optimist's marks. Clients may leave that
// member out.
func Recent(r *Request, seen [][]byte, marks string) bool {
	sent := r.Sent
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
	if object, _ := root.(map[string]any); object[marks] != nil { // the client has kept the marks
		marks = ""
	}
	first, _ := contentWithout(marks, seen[0])
	for i := len(seen) - 1; i >= 0; i-- {
		c, ok := contentWithout(marks, seen[i])
		if !ok {
			continue
		}
		if s.sharesNew(c, first) {
			return true
		}
		if whole, ok := r.whole(s, seen[i]); ok && whole.extends(c) {
			return true
		}
	}
	return false
}

// whole returns the content of what a client would have sent that had seen the document base. s is that of what it sent.
func (r *Request) whole(s content, base []byte) (content, bool) {
	if !r.Part {
		return s, true
	}
	made, err := r.On(base)
	if err != nil {
		return nil, false
	}
	return contentOf(made)
}

// content is what a document holds. It has an item for the path and the value of each scalar, and one for each value of a list, whatever
// its place in the list. It counts how often each item is there.
type content map[item]int

// item has the hash of its path. The paths themselves would need as much memory as the product of a document's depth and width.
type item struct {
	path   uint64
	value  string
	inList bool
}

// seed makes hashes that no client can foresee.
var seed = maphash.MakeSeed()

// step is the hash of the path that goes on from a path to a member there.
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

// extends reports whether c holds everything in was, and more: then it undoes nothing. A value may differ if the document has also grown.
// Clients that change a document together all add to it, so c then has the additions from before the start.
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

// sharesNew reports whether c and now hold something that the older first doesn't hold, and that isn't there by chance.
func (c content) sharesNew(now, first content) bool {
	for i, n := range now {
		if c[i] >= n && first[i] < n && (len(i.value) >= leastText || i.inList && len(i.value) >= leastItem) {
			return true
		}
	}
	return false
}
