package learn

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// sides are a value as a client had read it, as it sent it, and as others had made it meanwhile. Each may be missing.
type sides struct {
	path            string
	base, sent, cur tree.Value
	overwritten     bool // what others had made of it is gone
}

// read parses the values of a decision.
func read(d *merge.Decision) *sides {
	return &sides{d.Path, parse(d.Base), parse(d.Sent), parse(d.Current), d.Verdict == merge.Overwritten}
}

func parse(raw []byte) tree.Value {
	if raw == nil {
		return tree.Value{}
	}
	t := new(tree.Tree)
	if t.Parse(raw, tree.Limits{}) != nil {
		return tree.Value{} // can't be: it is a part of a document that was read
	}
	return t.Root()
}

// bothChanged reports whether two clients changed the value.
func bothChanged(d *merge.Decision) bool {
	return d.Both || d.Verdict == merge.Agreed || d.Verdict == merge.Combined
}

// stats count what two clients did to one path, over all documents of an index. An observation counts in one group at most.
type stats struct {
	conflicts, overwritten int

	equal, steps int // numbers: both moved it by the same; in the same direction, by a small step
	later        int // times: both made it later
	sets         int // lists of scalars, none of them twice
	setEdits     int // of these: something was taken out, or the same added twice
	keyed        int // lists of objects that a field tells apart, one of keys

	keys    []key // the fields that told elements apart in all of them
	span    span  // of the numbers
	writers tally // whose values took others' place
	logged  bool
}

// span is the least and the largest of numbers.
type span struct {
	low, high tree.Decimal
	any       bool
}

func (s *span) add(n tree.Decimal) {
	if !s.any || n.Compare(s.low) < 0 {
		s.low = n
	}
	if !s.any || n.Compare(s.high) > 0 {
		s.high = n
	}
	s.any = true
}

// key is a field that may tell the elements of a list apart.
type key struct {
	name string
	kept int // elements that both the base and what was sent have
	hits int // elements that a client changed or took out
}

// smallStep is up to what a number's step is more likely counted than made up.
var smallStep, _ = parse([]byte("10")).Decimal()

// add notes what two clients did to the value. equal says that they moved a number equally.
func (s *stats) add(v *sides, client string, now time.Time) (equal bool) {
	s.conflicts++
	if v.overwritten {
		s.overwritten++
		s.writers.add(client)
	}
	switch {
	case v.laterBoth(now):
		s.later++
	case v.sent.Kind() == tree.Number && !nearNow(v.sent, now):
		return s.moved(v)
	case v.sent.Kind() == tree.Array && v.cur.Kind() == tree.Array && v.base.Kind() != tree.Object:
		s.lists(v)
	}
	return false
}

// moved notes what two clients did to a number.
func (s *stats) moved(v *sides) (equal bool) {
	base, ok1 := v.base.Decimal()
	sent, ok2 := v.sent.Decimal()
	cur, ok3 := v.cur.Decimal()
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	zero := base.Add(base.Neg())
	mine, theirs := sent.Add(base.Neg()), cur.Add(base.Neg())
	switch {
	case mine.Compare(theirs) == 0:
		s.equal++
		equal = true
	case mine.Compare(zero) == theirs.Compare(zero) && mine.Abs().Compare(smallStep) <= 0:
		s.steps++
	default:
		return false
	}
	for _, n := range [...]tree.Decimal{base, sent, cur} {
		s.span.add(n)
	}
	return equal
}

// isTime matches times as ISO 8601 has them, which are in the order of their bytes, and takes out the zone.
var isTime = regexp.MustCompile(`^"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"$`)

// laterBoth reports whether the value is a time that both clients made later, or set.
func (v *sides) laterBoth(now time.Time) bool {
	return later(v.base, v.sent, now) && later(v.base, v.cur, now)
}

func later(from, to tree.Value, now time.Time) bool {
	if !from.Exists() || from.Kind() == tree.Null {
		from = to
	}
	if order, ok := to.Compare(from); !ok || order < 0 {
		return false
	}
	if to.Kind() == tree.Number {
		return nearNow(to, now)
	}
	a, b := isTime.FindSubmatch(from.Raw()), isTime.FindSubmatch(to.Raw())
	return a != nil && b != nil && bytes.Equal(a[1], b[1])
}

// nearNow reports whether a number is a time of these days: in seconds, with or without a fraction, or in milli-, micro- or nanoseconds.
func nearNow(v tree.Value, now time.Time) bool {
	n, err := strconv.ParseFloat(string(v.Raw()), 64)
	if err != nil {
		return false
	}
	for _, unit := range [...]float64{1, 1e3, 1e6, 1e9} {
		if math.Abs(n/unit-float64(now.Unix())) < (24 * time.Hour).Seconds() {
			return true
		}
	}
	return false
}

// maxElements is up to how many elements of a list are looked at.
const maxElements = 1000

// lists notes what two clients did to a list.
func (s *stats) lists(v *sides) {
	base, sent, cur := v.base.AppendElements(nil), v.sent.AppendElements(nil), v.cur.AppendElements(nil)
	if max(len(base), len(sent), len(cur)) > maxElements || len(sent)+len(cur) == 0 {
		return
	}
	in, ok := sets(base, sent, cur)
	if !ok {
		s.objects(base, sent, cur)
		return
	}
	s.sets++
	for text := range in[0] {
		if !in[1][text] || !in[2][text] {
			s.setEdits++
			return
		}
	}
	for text := range in[1] {
		if !in[0][text] && in[2][text] {
			s.setEdits++
			return
		}
	}
}

// sets are lists by their elements' texts. ok is false unless all are scalars, none twice in a list.
func sets(lists ...[]tree.Value) (in [3]map[string]bool, ok bool) {
	for i, list := range lists {
		in[i] = make(map[string]bool, len(list))
		for _, e := range list {
			if e.Kind().IsContainer() || in[i][string(e.Raw())] {
				return in, false
			}
			in[i][string(e.Raw())] = true
		}
	}
	return in, true
}

// objects notes what two clients did to a list of objects.
func (s *stats) objects(base, sent, cur []tree.Value) {
	var found []key
	for _, name := range fieldNames(slices.Concat(base, sent, cur)) {
		if in, unique := byField(name, base, sent, cur); unique {
			found = append(found, count(name, in))
		}
	}
	if s.keyed > 0 {
		found = slices.DeleteFunc(found, func(k key) bool { return !slices.ContainsFunc(s.keys, k.same) })
		for i := range found {
			before := s.keys[slices.IndexFunc(s.keys, found[i].same)]
			found[i].kept, found[i].hits = found[i].kept+before.kept, found[i].hits+before.hits
		}
	}
	if len(found) > 0 {
		s.keyed++
		s.keys = found
	}
}

func (k key) same(o key) bool { return k.name == o.name }

// fieldNames are the names of the first element's fields that are scalars; none, where an element isn't an object.
func fieldNames(elements []tree.Value) (names []string) {
	if slices.ContainsFunc(elements, func(e tree.Value) bool { return e.Kind() != tree.Object }) {
		return nil
	}
	for m := elements[0].First(); m.Exists(); m = m.Next() {
		if !m.Kind().IsContainer() {
			names = append(names, m.Key())
		}
	}
	return names
}

// byField are lists' elements by the text of a field. unique is false where that doesn't tell them apart.
func byField(name string, lists ...[]tree.Value) (in [3]map[string]tree.Value, unique bool) {
	for i, list := range lists {
		in[i] = make(map[string]tree.Value, len(list))
		for _, e := range list {
			v := e.Get(name)
			if _, twice := in[i][string(v.Raw())]; twice || !v.Exists() || v.Kind() == tree.Null || v.Kind().IsContainer() {
				return in, false
			}
			in[i][string(v.Raw())] = e
		}
	}
	return in, true
}

// count tells what became of the elements of the base, as a field tells them apart.
func count(name string, in [3]map[string]tree.Value) key {
	k := key{name: name}
	for text, was := range in[0] {
		sent, cur := in[1][text], in[2][text]
		if sent.Exists() {
			k.kept++
		}
		if !sent.Equal(was) || !cur.Equal(was) {
			k.hits++
		}
	}
	return k
}

// join adds what is known of another path.
func (s *stats) join(o *stats) {
	if o.span.any {
		s.span.add(o.span.low)
		s.span.add(o.span.high)
	}
	if s.keyed == 0 {
		s.keys = o.keys
	} else if o.keyed > 0 {
		s.keys = slices.DeleteFunc(s.keys, func(k key) bool { return !slices.ContainsFunc(o.keys, k.same) })
	}
	s.conflicts, s.overwritten = s.conflicts+o.conflicts, s.overwritten+o.overwritten
	s.equal, s.steps, s.later = s.equal+o.equal, s.steps+o.steps, s.later+o.later
	s.sets, s.setEdits, s.keyed = s.sets+o.sets, s.setEdits+o.setEdits, s.keyed+o.keyed
	s.logged = s.logged || o.logged
	for name := range o.writers {
		s.writers.add(name)
	}
}

// maxNames bounds the clients, and the paths, of a document.
const maxNames = 8

// tally counts names. The zero value has counted none.
type tally map[string]int

// add counts a name, unless there are too many others.
func (t *tally) add(name string) {
	if *t == nil {
		*t = tally{}
	}
	if _, known := (*t)[name]; known || len(*t) < maxNames {
		(*t)[name]++
	}
}
