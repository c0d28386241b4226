package rewrite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The model is the definition of the package comment once more, as simple as it can be said: on decoded values (maps,
// slices, strings), without bytes, hashes, tables or limits, with the default strategy Sent.

type missing struct{}

type model struct{ overwritten int }

func (m *model) value(b, s, c any) any {
	if alike(b, s) {
		return c
	}
	sMap, sIsMap := s.(map[string]any)
	cMap, cIsMap := c.(map[string]any)
	if sIsMap && cIsMap {
		if bMap, ok := asEmpty(b).(map[string]any); ok {
			return m.object(bMap, sMap, cMap)
		} else if asEmpty(b) == nil {
			return m.object(nil, sMap, cMap)
		}
	}
	sList, sIsList := s.([]any)
	cList, cIsList := c.([]any)
	if sIsList && cIsList {
		if bList, ok := asEmpty(b).([]any); ok {
			return m.array(bList, sList, cList)
		} else if asEmpty(b) == nil {
			return m.array(nil, sList, cList)
		}
	}
	switch {
	case alike(b, c), alike(s, c):
		return s
	}
	m.overwritten++
	return s
}

// asEmpty maps what a container may begin from to nil.
func asEmpty(b any) any {
	if _, ok := b.(missing); ok {
		return nil
	}
	return b
}

func alike(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

func get(o map[string]any, k string) any {
	if v, ok := o[k]; ok {
		return v
	}
	return missing{}
}

func (m *model) object(b, s, c map[string]any) any {
	out, keys := map[string]any{}, map[string]bool{}
	for _, o := range []map[string]any{b, s, c} {
		for k := range o {
			keys[k] = true
		}
	}
	for k := range keys {
		v := m.value(get(b, k), get(s, k), get(c, k))
		if _, gone := v.(missing); !gone {
			out[k] = v
		}
	}
	return out
}

// A side is one script: what stands at each gap of the base, and which of the base's elements are left.
type side struct {
	left     []bool
	run      [][]any
	replaces []int // for each gap, how many elements the run there stands for
}

func scriptOf(base, other []any, pairs [][2]int) side {
	n := len(base)
	s := side{make([]bool, n), make([][]any, n+1), make([]int, n+1)}
	pairs = append(pairs, [2]int{n, len(other)})
	i, j := 0, 0
	for _, p := range pairs {
		run, removed := other[j:p[1]], p[0]-i
		if len(run) == removed {
			for x := range run {
				s.run[i+x], s.replaces[i+x] = run[x:x+1], 1
			}
		} else {
			s.run[i], s.replaces[i] = run, removed
		}
		if p[0] < n {
			s.left[p[0]] = true
		}
		i, j = p[0]+1, p[1]+1
	}
	return s
}

// findMoves has a run stand for nothing if the elements that it stands for were all moved away, or its own were all moved there.
func findMoves(base []any, s side, pairs [][2]int) {
	if !slices.ContainsFunc(pairs, otherPlace) && !tellApart(base) {
		return
	}
	away, in := map[string]int{}, map[string]int{}
	for i, e := range base {
		if !s.left[i] {
			away[fmt.Sprintf("%#v", e)]++
		}
	}
	for _, run := range s.run {
		for _, e := range run {
			in[fmt.Sprintf("%#v", e)]++
		}
	}
	for k, n := range away {
		away[k] = min(n, in[k])
	}
	in = maps.Clone(away)
	unmoved := func(list []any, moved map[string]int) (row []int) {
		for i, e := range list {
			if k := fmt.Sprintf("%#v", e); moved[k] > 0 {
				moved[k]--
			} else if len(row) == 0 || row[len(row)-1] == i-1 {
				row = append(row, i)
			}
		}
		return row
	}
	for i := 0; i <= len(base); i++ {
		n := s.replaces[i]
		gone, fresh := unmoved(base[i:i+n], away), unmoved(s.run[i], in)
		s.replaces[i] = 0
		if len(gone) > 0 && len(fresh) > 0 {
			s.run[i], s.run[i+gone[0]] = s.run[i+gone[0]], s.run[i]
			s.replaces[i+gone[0]] = len(gone)
		}
		i += max(n-1, 0)
	}
}

// canonicalLCS is the pairs of equal places, if no common subsequence is longer and a's elements aren't told apart, else the leftmost.
func canonicalLCS(a, b []any) [][2]int {
	best := leftmostLCS(a, b)
	if tellApart(a) {
		return best
	}
	if same := samePlaces(a, b); len(same) == len(best) {
		return same
	}
	return best
}

// tellApart reports whether all are strings or objects, and none are equal.
func tellApart(list []any) bool {
	for i, v := range list {
		if !named(v) {
			return false
		}
		if slices.ContainsFunc(list[:i], func(w any) bool { return alike(v, w) }) {
			return false
		}
	}
	return true
}

// named reports whether v is a string or an object.
func named(v any) bool {
	text, _ := v.(string)
	_, object := v.(map[string]any)
	return object || strings.HasPrefix(text, "string ")
}

// samePlaces pairs what is equal at the same places.
func samePlaces(a, b []any) (same [][2]int) {
	for k := range min(len(a), len(b)) {
		if alike(a[k], b[k]) {
			same = append(same, [2]int{k, k})
		}
	}
	return same
}

func otherPlace(pair [2]int) bool { return pair[0] != pair[1] }

func onlyPlaces(list []any) bool {
	for i, v := range list {
		if _, array := v.([]any); array {
			return true
		}
		if slices.ContainsFunc(list[:i], func(w any) bool { return alike(v, w) }) {
			return true
		}
	}
	return false
}

// leftmostLCS tries every common subsequence.
func leftmostLCS(a, b []any) (best [][2]int) {
	var try func(i, j int, pairs [][2]int)
	try = func(i, j int, pairs [][2]int) {
		if len(pairs) > len(best) {
			best = slices.Clone(pairs) // of equally long ones the first found is the leftmost
		}
		for x := i; x < len(a); x++ {
			for y := j; y < len(b); y++ {
				if alike(a[x], b[y]) {
					try(x+1, y+1, append(slices.Clone(pairs), [2]int{x, y}))
				}
			}
		}
	}
	try(0, 0, nil)
	return best
}

func (m *model) array(base, sent, cur []any) any {
	toSent, toCur := canonicalLCS(base, sent), canonicalLCS(base, cur)
	if len(base) == len(sent) && len(base) == len(cur) && !slices.ContainsFunc(toSent, otherPlace) && onlyPlaces(base) {
		toCur = samePlaces(base, cur) // a row
	}
	s, c := scriptOf(base, sent, toSent), scriptOf(base, cur, toCur)
	findMoves(base, s, toSent)
	findMoves(base, c, toCur)
	region := regions(len(base), s, c) // for each element, the number of its region, or 0
	oneToOne := func(i int) bool {
		return s.replaces[i] == 1 && c.replaces[i] == 1 && len(s.run[i]) == 1 && len(c.run[i]) == 1
	}
	named, dropCur, dropSent, restored := map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i, g := range region {
		switch {
		case g == 0 || count(region, g) == 1 && oneToOne(i):
		case s.replaces[i] == count(region, g) && c.replaces[i] == count(region, g) && alike(s.run[i], c.run[i]):
			dropSent[i] = true
			named[g] = true // not a conflict: both made the same change
		default:
			dropCur[i] = c.replaces[i] > 0
			restored[i] = s.left[i]
			if !named[g] && !sameWhole(region, g, s, c) {
				named[g] = true
				m.overwritten++
			}
		}
	}
	leaveSent, leaveCur := moves(base, s, c, func(i int) bool { return region[i] != 0 && oneToOne(i) && count(region, region[i]) == 1 }, dropSent, dropCur)
	out := []any{}
	for i := 0; i <= len(base); i++ {
		if i < len(base) && region[i] != 0 && count(region, region[i]) == 1 && oneToOne(i) {
			out = append(out, m.value(base[i], s.run[i][0], c.run[i][0]))
			continue
		}
		if !dropCur[i] {
			for x, e := range c.run[i] {
				if !leaveCur[[2]int{i, x}] {
					out = append(out, e)
				}
			}
		}
		if !dropSent[i] {
			for x, e := range s.run[i] {
				if !leaveSent[[2]int{i, x}] {
					out = append(out, e)
				}
			}
		}
		if i < len(base) && s.left[i] && (c.left[i] || restored[i]) {
			out = append(out, base[i])
		}
	}
	return out
}

// sameWhole reports whether region g is one hunk on both sides, with the same run.
func sameWhole(region []int, g int, s, c side) bool {
	first, n := slices.Index(region, g), count(region, g)
	return s.replaces[first] == n && c.replaces[first] == n && alike(s.run[first], c.run[first])
}

func count(list []int, g int) (n int) {
	for _, x := range list {
		if x == g {
			n++
		}
	}
	return n
}

// regions numbers the elements that hunks of both sides replace, together with all that those hunks touch.
func regions(n int, s, c side) []int {
	id := make([]int, n)
	for i := range id {
		id[i] = i + 1
	}
	join := func(lo, hi int) {
		for changed := true; changed; {
			changed = false
			for i := lo; i < hi; i++ {
				if least := slices.Min(id[lo:hi]); id[i] != least {
					old := id[i]
					for j := range id {
						if id[j] == old {
							id[j] = least
						}
					}
					changed = true
				}
			}
		}
	}
	by := [2][]bool{make([]bool, n), make([]bool, n)}
	for k, x := range []side{s, c} {
		for i := range n {
			if x.replaces[i] > 0 && len(x.run[i]) > 0 {
				join(i, i+x.replaces[i])
				for j := i; j < i+x.replaces[i]; j++ {
					by[k][j] = true
				}
			}
		}
	}
	both := map[int]bool{}
	for i := range n {
		both[id[i]] = both[id[i]] || by[0][i] && by[1][i]
	}
	for i := range n {
		if !both[id[i]] {
			id[i] = 0
		}
	}
	return id
}

// moves finds what was put in again of the elements that both sides removed, and is left out: what current has put in, too, and a string
// or an object that is in the base once, and that only one side has put in, once.
func moves(base []any, s, c side, paired func(int) bool, dropSent, dropCur map[int]bool) (bySent, byCur map[[2]int]bool) {
	removed, movable := map[string]int{}, map[string]int{}
	for i, e := range base {
		if named(e) {
			movable[fmt.Sprintf("%#v", e)]++
		}
		if !s.left[i] && !c.left[i] {
			removed[fmt.Sprintf("%#v", e)]++
		}
	}
	again := func(s side, drop map[int]bool) map[string][][2]int {
		places := map[string][][2]int{}
		for i := 0; i <= len(base); i++ {
			for x, e := range s.run[i] {
				if !drop[i] && (i == len(base) || !paired(i)) {
					k := fmt.Sprintf("%#v", e)
					places[k] = append(places[k], [2]int{i, x})
				}
			}
		}
		return places
	}
	bySent, byCur = map[[2]int]bool{}, map[[2]int]bool{}
	sent, cur := again(s, dropSent), again(c, dropCur)
	for k, n := range removed {
		both := min(n, len(sent[k]), len(cur[k]))
		for _, place := range sent[k][:both] {
			bySent[place] = true
		}
		if movable[k] == 1 && len(sent[k])+len(cur[k]) == 1 {
			for _, place := range sent[k] {
				bySent[place] = true
			}
			for _, place := range cur[k] {
				byCur[place] = true
			}
		}
	}
	return bySent, byCur
}

func TestMergeIsWhatTheModelSays(t *testing.T) {
	m := mustMerger(t, Sent)
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		compareWithModel(t, m, base, sent, current)
	})
}

// Short arrays of few values: everything overlaps with everything.
func TestMergeOfArraysIsWhatTheModelSays(t *testing.T) {
	m := mustMerger(t, Sent)
	for name, elements := range map[string][]string{
		"of all kinds": {"1", "2", "3", "4", `{"a":1}`, `{"a":2}`, `{"b":1}`, "[1]", "[2]"},
		"of strings":   {`"a"`, `"b"`, `"c"`, `"d"`, `"e"`, `"f"`},
	} {
		element := rapid.SampledFrom(elements)
		doc := rapid.Custom(func(t *rapid.T) []byte {
			list := rapid.SliceOfN(element, 0, 6).Draw(t, "list")
			return fmt.Appendf(nil, `{"l":[%s]}`, joined(list))
		})
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			compareWithModel(t, m, doc.Draw(t, "base"), doc.Draw(t, "sent"), doc.Draw(t, "current"))
		}))
	}
}

func joined(list []string) (s string) {
	for i, e := range list {
		if i > 0 {
			s += ","
		}
		s += e
	}
	return s
}

func compareWithModel(t *rapid.T, m *Merger, base, sent, current []byte) {
	res, err := m.Merge(base, sent, current)
	if err != nil {
		t.Fatal(err)
	}
	var mod model
	want := mod.value(decode(t, base), decode(t, sent), decode(t, current))
	if got := decode(t, res.Doc); !alike(got, want) {
		t.Fatalf("base    %s\nsent    %s\ncurrent %s\ngot     %s\nwant    %v", base, sent, current, res.Doc, want)
	}
	if (mod.overwritten > 0) != (len(res.Overwritten) > 0) {
		t.Fatalf("base    %s\nsent    %s\ncurrent %s\noverwritten %q, the model counts %d", base, sent, current, res.Overwritten, mod.overwritten)
	}
}

func listOf(l []int) string {
	s := make([]string, len(l))
	for i, e := range l {
		s[i] = fmt.Sprint(e)
	}
	return "[" + joined(s) + "]"
}

func anys(l []int) (out []any) {
	for _, e := range l {
		out = append(out, e)
	}
	return out
}
