package glob

import (
	"bytes"
	"strings"
)

// Filter keeps of a JSON value what its patterns select, as the parameter filter_path and the filters of _source do. A pattern is
// a path whose parts are separated by dots; a backslash before a dot makes it part of a name. In a part `*` stands for any text;
// the part `**` stands for one name or more. A pattern selects the members that it names and all below them. It names the members
// of a list's objects as if the list weren't there. Excluding patterns win. Objects and lists that the filter empties are left
// out. A Filter doesn't change: goroutines may share it.
type Filter struct{ include, exclude automaton }

// blanks are what the engines take off both ends of a path.
const blanks = "\t\n\v\f\r "

// ParseFilter reads the value of filter_path: patterns with commas between them. A pattern with a minus sign in front excludes.
func ParseFilter(value string) Filter {
	var f Filter
	for path := range strings.SplitSeq(value, ",") {
		if rest, excludes := strings.CutPrefix(strings.Trim(path, blanks), "-"); excludes {
			f.exclude.add(rest)
		} else {
			f.include.add(rest)
		}
	}
	return f
}

// Len is the number of the filter's patterns.
func (f *Filter) Len() int { return len(f.include.starts) + len(f.exclude.starts) }

// Append appends the part of an object or a list that the filter keeps; it is empty if the filter keeps nothing: see walk.
func (f *Filter) Append(dst, value []byte) []byte {
	w := walk{rules: f, dst: dst, value: value}
	return w.all(f.top())
}

func (f *Filter) top() place {
	return place{include: f.include.start(), exclude: f.exclude.start(), selected: len(f.include.starts) == 0}
}

func (f *Filter) whole(at place) bool { return at.selected && len(at.exclude) == 0 }

func (f *Filter) keepsEmptied() bool { return false }

func (f *Filter) below(name string, at place, steps *int) (to place, wanted bool) {
	to, excluded := place{selected: at.selected}, false
	if to.exclude, excluded = f.exclude.step(at.exclude, name, steps); excluded {
		return to, false
	}
	if !at.selected {
		to.include, to.selected = f.include.step(at.include, name, steps)
	}
	return to, to.selected || len(to.include) > 0
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

func (a *automaton) none() states { return make(states, (len(a.parts)+63)/64) }

func (a *automaton) add(path string) {
	if path == "" {
		return
	}
	a.starts = append(a.starts, len(a.parts))
	var text []byte
	for p := range strings.SplitSeq(path, ".") {
		if text = append(text, p...); bytes.HasSuffix(text, []byte(`\`)) {
			text[len(text)-1] = '.'
			continue
		}
		a.parts = append(a.parts, part{text: string(text)})
		text = text[:0]
	}
	if len(text) > 0 { // a backslash and a dot are the last of it
		a.parts = append(a.parts, part{text: string(text)})
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
		to.add(i + 1)
		if p.text == "**" {
			to.add(i)
		}
	}
	return to, false
}
