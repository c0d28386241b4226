package glob

import (
	"encoding/json"
	"strings"

	"optimist/internal/jsontext"
)

// place is a value's place in JSON, as far as it decides what is kept of it.
type place struct {
	selected         bool   // the value is kept, but for what is taken out of it
	include, exclude states // where a Filter's patterns stand
	path             string // for Fields: the names down to here
}

// rules decide what is kept.
type rules interface {
	// below is the place of an object's member; wanted is false if nothing of it is kept.
	below(name string, at place, steps *int) (to place, wanted bool)
	// whole reports whether a selected value is kept as it is.
	whole(at place) bool
	// keepsEmptied reports whether an object's selected member stays if all that was in it is taken out. A list's element doesn't.
	keepsEmptied() bool
}

// walk appends what the rules keep of a value, in one pass. The bytes that it keeps stay as they are. It keeps the whole of what isn't
// JSON, and of what is nested more deeply than the engines take.
type walk struct {
	rules
	dst, value []byte
	depth      int // of the container that is looked at
	steps      int // what it costs: comparisons of a part with a name, or the length of paths
	most       int // steps, beyond which the value is kept whole; 0: there is no bound
}

// all appends what is kept of the whole value.
func (w *walk) all(at place) []byte {
	begin := len(w.dst)
	if _, end := w.append(jsontext.SkipSpace(w.value, 0), at); end < 0 || jsontext.SkipSpace(w.value, end) < len(w.value) {
		return append(w.dst[:begin], w.value...)
	}
	return w.dst
}

// append appends what is kept of the value that begins at i. It returns the index behind the value, -1 if that isn't JSON.
func (w *walk) append(i int, at place) (kept bool, end int) {
	container := i < len(w.value) && (w.value[i] == '{' || w.value[i] == '[')
	if container && !w.whole(at) {
		if w.depth == jsontext.MaxNesting {
			return false, -1
		}
		w.depth++
		kept, end = w.container(i, at)
		w.depth--
		return kept, end
	}
	end = jsontext.ValueEnd(w.value, i)
	if at.selected && end >= 0 {
		w.dst = append(w.dst, w.value[i:end]...)
	}
	return at.selected, end
}

// container appends what is kept of an object or a list.
func (w *walk) container(i int, at place) (kept bool, end int) {
	b, children, opened, object := w.value, 0, len(w.dst)+1, w.value[i] == '{'
	w.dst = append(w.dst, b[i])
	for i = jsontext.SkipSpace(b, i+1); i < len(b) && b[i] != '}' && b[i] != ']'; children++ {
		mark := len(w.dst)
		if mark > opened {
			w.dst = append(w.dst, ',')
		}
		if object {
			kept, end = w.member(i, at)
		} else {
			kept, end = w.append(i, at)
		}
		if end < 0 {
			return false, -1
		}
		if !kept {
			w.dst = w.dst[:mark]
		}
		if i = jsontext.SkipSpace(b, end); i < len(b) && b[i] == ',' {
			i = jsontext.SkipSpace(b, i+1)
		}
	}
	if i >= len(b) {
		return false, -1
	}
	kept = len(w.dst) > opened || at.selected && children == 0 && !w.keepsEmptied()
	w.dst = append(w.dst, b[i])
	return kept, i + 1
}

// member appends what is kept of the member that begins at i.
func (w *walk) member(i int, at place) (kept bool, end int) {
	b := w.value
	if end = jsontext.StringEnd(b, i); end < 0 {
		return false, -1
	}
	name := string(b[i+1 : end-1])
	if strings.Contains(name, `\`) && json.Unmarshal(b[i:end], &name) != nil {
		return false, -1 // unreachable in JSON
	}
	below, wanted := w.below(name, at, &w.steps)
	if w.most > 0 && w.steps > w.most {
		return false, -1
	}
	w.dst = append(append(w.dst, b[i:end]...), ':')
	i = jsontext.SkipSpace(b, jsontext.SkipSpace(b, end)+1) // behind the colon
	if !wanted {
		return false, jsontext.ValueEnd(b, i)
	}
	kept, end = w.append(i, below)
	return kept || below.selected && w.keepsEmptied(), end
}

// states is a set of states, a bit each; nil is the empty set.
type states []uint64

func (s states) has(i int) bool { return len(s) > 0 && s[i/64]&(1<<(i%64)) != 0 }

func (s states) add(i int) { s[i/64] |= 1 << (i % 64) }
