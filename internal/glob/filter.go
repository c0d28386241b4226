package glob

import (
	"encoding/json"
	"strings"

	"optimist/internal/jsontext"
)

// Filter keeps of a JSON value what its patterns select, as the parameter filter_path and the filters of _source do. A pattern is
// a path whose parts are separated by dots; a backslash before a dot makes it part of a name. In a part `*` stands for any text;
// the part `**` stands for one name or more. A pattern selects the members that it names and all below them. It names the members
// of a list's objects as if the list weren't there. Excluding patterns win. Objects and lists that the filter empties are left
// out. A Filter doesn't change: goroutines may share it.
type Filter struct{ include, exclude automaton }

// NewFilter returns the filter that keeps what the patterns of include select, everything without such a pattern, and of that
// what the patterns of exclude don't select. Empty patterns don't count.
func NewFilter(include, exclude []string) Filter {
	var f Filter
	for _, path := range include {
		f.include.add(path)
	}
	for _, path := range exclude {
		f.exclude.add(path)
	}
	return f
}

// ParseFilter reads the value of filter_path: patterns with commas between them. A pattern with a minus sign in front excludes.
func ParseFilter(value string) Filter {
	var f Filter
	for path := range strings.SplitSeq(value, ",") {
		if rest, excludes := strings.CutPrefix(strings.TrimSpace(path), "-"); excludes {
			f.exclude.add(rest)
		} else {
			f.include.add(rest)
		}
	}
	return f
}

// Len is the number of the filter's patterns.
func (f *Filter) Len() int { return len(f.include.starts) + len(f.exclude.starts) }

// Append appends what the filter keeps of an object or a list, which is an empty one if that is nothing. The bytes that it keeps
// stay as they are. It keeps the whole of what isn't JSON, and of
// what is nested more deeply than the engines take.
func (f *Filter) Append(dst, value []byte) []byte {
	w := walk{Filter: f, dst: dst, value: value}
	if _, end := w.append(jsontext.SkipSpace(value, 0), f.top()); end < 0 || jsontext.SkipSpace(value, end) < len(value) {
		return append(w.dst[:len(dst)], value...)
	}
	return w.dst
}

func (f *Filter) top() place {
	return place{include: f.include.start(), exclude: f.exclude.start(), selected: len(f.include.starts) == 0}
}

// automaton matches all patterns at the same time. Its states are the parts of the patterns: it is in the state of a part if the
// names down to here match the parts before that one. So a step costs at most one comparison for each part, however many stars
// the patterns have.
type automaton struct {
	parts  []part
	starts []int // the first part of each pattern
}

type part struct {
	text string
	last bool
}

// states is a set of states, a bit each; nil is the empty set.
type states []uint64

func (s states) has(i int) bool { return len(s) > 0 && s[i/64]&(1<<(i%64)) != 0 }
func (s states) add(i int)      { s[i/64] |= 1 << (i % 64) }

func (a *automaton) none() states { return make(states, (len(a.parts)+63)/64) }

func (a *automaton) add(path string) {
	if path == "" {
		return
	}
	a.starts = append(a.starts, len(a.parts))
	text := ""
	for p := range strings.SplitSeq(path, ".") {
		if text += p; strings.HasSuffix(text, `\`) {
			text = text[:len(text)-1] + "."
			continue
		}
		a.parts = append(a.parts, part{text: text})
		text = ""
	}
	if text != "" { // a backslash and a dot are the last of it
		a.parts = append(a.parts, part{text: text})
	}
	a.parts[len(a.parts)-1].last = true
}

func (a *automaton) start() states {
	s := a.none()
	for _, i := range a.starts {
		s.add(i)
	}
	return s
}

// step returns the states behind a name. selected reports that a pattern ends with the name; then the states don't count.
func (a *automaton) step(from states, name string, steps *int) (to states, selected bool) {
	for i := range a.parts {
		if !from.has(i) {
			continue
		}
		*steps++
		p := &a.parts[i]
		if !Match(p.text, name) {
			continue
		}
		if p.last {
			return nil, true
		}
		if to == nil {
			to = a.none()
		}
		if to.add(i + 1); p.text == "**" {
			to.add(i)
		}
	}
	return to, false
}

// place is where the patterns stand at one value.
type place struct {
	include, exclude states
	selected         bool // by a pattern, or because no pattern includes
}

// walk appends what the filter keeps of a value, in one pass.
type walk struct {
	*Filter
	dst, value []byte
	depth      int // of the container that is looked at
	steps      int // the comparisons of a part with a name: what the filter costs
}

// append appends what is kept of the value that begins at i. It returns the index behind the value, -1 if that isn't JSON.
func (w *walk) append(i int, at place) (kept bool, end int) {
	container := i < len(w.value) && (w.value[i] == '{' || w.value[i] == '[')
	if container && !(at.selected && len(at.exclude) == 0) {
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
	b, object, children, opened := w.value, w.value[i] == '{', 0, len(w.dst)+1
	w.dst = append(w.dst, b[i])
	for i = jsontext.SkipSpace(b, i+1); i < len(b) && b[i] != '}' && b[i] != ']'; children++ {
		mark, below, wanted := len(w.dst), at, true
		if mark > opened {
			w.dst = append(w.dst, ',')
		}
		if object {
			if end = jsontext.StringEnd(b, i); end < 0 {
				return false, -1
			}
			w.dst = append(append(w.dst, b[i:end]...), ':')
			below, wanted = w.member(b[i:end], at)
			i = jsontext.SkipSpace(b, jsontext.SkipSpace(b, end)+1) // behind the colon
		}
		if kept = false; wanted {
			kept, end = w.append(i, below)
		} else {
			end = jsontext.ValueEnd(b, i)
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
	kept = len(w.dst) > opened || at.selected && children == 0
	w.dst = append(w.dst, b[i])
	return kept, i + 1
}

// member returns where the patterns stand below a member; wanted is false if nothing of it is kept.
func (w *walk) member(key []byte, at place) (below place, wanted bool) {
	name := string(key[1 : len(key)-1])
	if strings.Contains(name, `\`) && json.Unmarshal(key, &name) != nil {
		return at, false // unreachable in JSON
	}
	below, excluded := place{selected: at.selected}, false
	if below.exclude, excluded = w.exclude.step(at.exclude, name, &w.steps); excluded {
		return below, false
	}
	if !at.selected {
		below.include, below.selected = w.include.step(at.include, name, &w.steps)
	}
	return below, below.selected || len(below.include) > 0
}
