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
	bList, _ := b.([]any)
	nothingSent, nothingCur := asEmpty(s) == nil, asEmpty(c) == nil
	if !alike(b, c) && !alike(s, c) && bList != nil && (sIsList && nothingCur || cIsList && nothingSent) &&
		!changeParts(bList, sList) && !changeParts(bList, cList) {
		list, _ := m.array(bList, sList, cList).([]any)
		switch {
		case len(list) > 0:
			return list
		case nothingCur:
			return c
		case s == nil:
			return []any{}
		}
		return s
	}
	switch {
	case alike(b, c), alike(s, c):
		return s
	case dropped(b, s):
		return c
	case dropped(b, c):
		return s
	}
	m.overwritten++
	return s
}

// changeParts reports whether a side changed a list with numbers or lists in it.
func changeParts(base, list []any) bool {
	n := len(canonicalLCS(base, list))
	return n < len(base) && n < len(list) && slices.ContainsFunc(base, func(e any) bool { return !named(e) })
}

// dropped reports whether an empty value was left out, or says nothing in another way.
func dropped(from, to any) bool {
	_, gone := to.(missing)
	return silent(to) && (silent(from) || gone && slices.Contains([]any{false, "string ", "number 0"}, from))
}

// silent reports whether v is nothing, null, or a container without a value in it.
func silent(v any) bool {
	switch v := v.(type) {
	case nil, missing:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(m any) bool { return !silent(m) })
	}
	return false
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

// A side is one script: what stands at each gap of the base, which of that is instead of the element there, and which of the base's elements
// are left.
type side struct {
	left    []bool
	run     [][]any
	instead []int // -1: none
	row     bool
}

func scriptOf(base, other []any, pairs [][2]int) side {
	n := len(base)
	s := side{make([]bool, n+1), make([][]any, n+1), slices.Repeat([]int{-1}, n+1), !slices.ContainsFunc(pairs, otherPlace) && !tellApart(base)}
	away, in := moved(base, other, pairs)
	pairs = append(pairs, [2]int{n, len(other)})
	i, j := 0, 0
	for _, p := range pairs {
		s.between(base[:p[0]], other[:p[1]], i, j, away, in)
		s.left[p[0]] = p[0] < n
		i, j = p[0]+1, p[1]+1
	}
	return s
}

// between adds what the side has put from place j of its list on in place of the base's elements from place i on.
func (s *side) between(base, other []any, i, j int, away, in map[string]int) {
	gone, fresh := unmoved(base, i, away), unmoved(other, j, in)
	if !s.row || len(gone) != len(fresh) {
		gone, fresh = partners(base, other, gone, fresh)
	}
	if len(gone) == 0 {
		s.run[i] = other[j:]
		return
	}
	g, f := gone, fresh
	for k := range g {
		end := f[k] + 1
		if k == len(g)-1 {
			end = len(other)
		}
		s.run[g[k]], s.instead[g[k]] = other[j:end], f[k]-j
		j = end
	}
}

// partners tries all ways to pair elements in their order; of the best ones it takes the first.
func partners(base, other []any, gone, fresh []int) (g, f []int) {
	most := -1
	var try func(i, j int, with [2][]int)
	try = func(i, j int, with [2][]int) {
		if i == len(gone) || j == len(fresh) {
			if n := 2*len(with[0]) + inCommon(base, other, with[0], with[1]); n > most {
				g, f, most = with[0], with[1], n
			}
			return
		}
		try(i+1, j+1, [2][]int{append(slices.Clone(with[0]), gone[i]), append(slices.Clone(with[1]), fresh[j])})
		try(i, j+1, with)
		try(i+1, j, with)
	}
	try(0, 0, [2][]int{})
	return g, f
}

// moved counts the elements that were moved, twice.
func moved(base, other []any, pairs [][2]int) (away, in map[string]int) {
	away, in = map[string]int{}, map[string]int{}
	if !slices.ContainsFunc(pairs, otherPlace) && !tellApart(base) {
		return away, in
	}
	for _, e := range base {
		away[fmt.Sprintf("%#v", e)]++
	}
	for _, e := range other {
		in[fmt.Sprintf("%#v", e)]++
	}
	for _, p := range pairs {
		away[fmt.Sprintf("%#v", base[p[0]])]--
		in[fmt.Sprintf("%#v", other[p[1]])]--
	}
	for k, n := range away {
		away[k] = min(n, in[k])
	}
	return away, maps.Clone(away)
}

// unmoved lists the places from one on whose elements weren't moved.
func unmoved(list []any, from int, moved map[string]int) (places []int) {
	for i := from; i < len(list); i++ {
		if k := fmt.Sprintf("%#v", list[i]); moved[k] > 0 {
			moved[k]--
		} else {
			places = append(places, i)
		}
	}
	return places
}

// inCommon is how much two lists of elements have in common: texts count 4, all else 1.
func inCommon(base, other []any, gone, fresh []int) (n int) {
	for k := range gone {
		a, b := leaves("", base[gone[k]]), leaves("", other[fresh[k]])
		for path, v := range b {
			switch w, ok := a[path]; {
			case !ok || !alike(v, w):
			case named(v):
				n += 4
			default:
				n++
			}
		}
	}
	return n
}

// leaves are the values in v that are no containers, by their paths.
func leaves(path string, v any) map[string]any {
	all := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			maps.Copy(all, leaves(path+"/"+name, m))
		}
	case []any:
		for i, e := range v {
			maps.Copy(all, leaves(fmt.Sprint(path, "[", i), e))
		}
	default:
		all[path] = v
	}
	return all
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

// clashByPlace reports whether some place has one new element in sent, and another one in cur.
func clashByPlace(base, sent, cur []any) bool {
	for k := range base {
		if !alike(base[k], sent[k]) && !alike(base[k], cur[k]) && !alike(sent[k], cur[k]) {
			return true
		}
	}
	return false
}

// slide is the pairs of two windows that slide over base to the same end, of which pairsSent and pairsCur elements are left at most.
func slide(base, sent, cur []any, pairsSent, pairsCur int) (toSent, toCur [][2]int, ok bool) {
	most := 0
	for _, toEnd := range []bool{true, false} {
		stay := func(list []any) (pairs [][2]int) {
			for n := min(len(base), len(list)); n > 0; n-- {
				i, j := len(base)-n, 0
				if !toEnd {
					i, j = 0, len(list)-n
				}
				if alike(base[i:i+n], list[j:j+n]) {
					for k := range n {
						pairs = append(pairs, [2]int{i + k, j + k})
					}
					return pairs
				}
			}
			return nil
		}
		window := func(list []any, n, pairs int) bool {
			return n < len(list) && 2*n >= min(len(base), len(list)) && (n >= pairs || n+1 == pairs && pairs < len(base) && pairs < len(list))
		}
		s, c := stay(sent), stay(cur)
		if window(sent, len(s), pairsSent) && window(cur, len(c), pairsCur) && len(s)+len(c) > most {
			toSent, toCur, ok, most = s, c, true, len(s)+len(c)
		}
	}
	return toSent, toCur, ok
}

func isList(v any) bool {
	_, list := v.([]any)
	return list
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
	windows := false
	if onlyPlaces(base) {
		n, bySent, byCur := len(base), samePlaces(base, sent), samePlaces(base, cur)
		row := n == len(sent) && n == len(cur)
		fewSent, fewCur := n-len(bySent) <= 2*(n-len(toSent)), n-len(byCur) <= 2*(n-len(toCur))
		sentStays, curStays := !slices.ContainsFunc(toSent, otherPlace), !slices.ContainsFunc(toCur, otherPlace)
		slidSent, slidCur, slid := slide(base, sent, cur, len(toSent), len(toCur))
		switch {
		case slid && !(sentStays && curStays) && !(row && fewSent && fewCur && (sentStays || !clashByPlace(base, sent, cur))):
			toSent, toCur, windows = slidSent, slidCur, true
		case row && fewSent && (sentStays || !clashByPlace(base, sent, cur) || fewCur && !slices.ContainsFunc(base, isList)):
			toSent, toCur = bySent, byCur
		}
	}
	s, c := scriptOf(base, sent, toSent), scriptOf(base, cur, toCur)
	both := func(i int) bool { return s.instead[i] >= 0 && c.instead[i] >= 0 }
	leaveSent, leaveCur := moves(base, s, c)
	if windows {
		leaveSent, leaveCur = nil, nil
	}
	out := []any{}
	add := func(run []any, i, from, to int, leave map[[2]int]bool) {
		for x := from; x < to; x++ {
			if !leave[[2]int{i, x}] {
				out = append(out, run[x])
			}
		}
	}
	for i := range len(base) + 1 {
		from, to := s.instead[i], c.instead[i]
		sentRun, curRun := s.run[i], c.run[i]
		if both(i) && from == to && alike(sentRun, curRun) { // both made the same change
			sentRun, from = sentRun[from:from+1], 0
		}
		switch {
		case both(i):
			add(curRun, i, 0, to, leaveCur)
			add(sentRun, i, 0, from, leaveSent)
			out = append(out, m.value(base[i], sentRun[from], curRun[to]))
			add(curRun, i, to+1, len(curRun), leaveCur)
			add(sentRun, i, from+1, len(sentRun), leaveSent)
		case from >= 0 && c.left[i]:
			add(curRun, i, 0, len(curRun), leaveCur)
			add(sentRun, i, 0, from, leaveSent)
			out = append(out, sentRun[from])
			add(sentRun, i, from+1, len(sentRun), leaveSent)
		default:
			if to < 0 {
				to = len(curRun)
			}
			add(curRun, i, 0, to, leaveCur)
			add(sentRun, i, 0, len(sentRun), leaveSent)
			add(curRun, i, to, len(curRun), leaveCur)
			if s.left[i] && c.left[i] {
				out = append(out, base[i])
			}
		}
	}
	return out
}

// moves finds what was put in again of the elements that both sides removed, and is left out: what current has put in, too, and a string
// or an object that is in the base once, and that only one side has put in, once.
func moves(base []any, s, c side) (bySent, byCur map[[2]int]bool) {
	removed, movable := map[string]int{}, map[string]int{}
	for i, e := range base {
		if named(e) {
			movable[fmt.Sprintf("%#v", e)]++
		}
		if !s.left[i] && !c.left[i] {
			removed[fmt.Sprintf("%#v", e)]++
		}
	}
	again := func(s side) map[string][][2]int {
		places := map[string][][2]int{}
		for i := 0; i <= len(base); i++ {
			for x, e := range s.run[i] {
				if x != s.instead[i] {
					k := fmt.Sprintf("%#v", e)
					places[k] = append(places[k], [2]int{i, x})
				}
			}
		}
		return places
	}
	bySent, byCur = map[[2]int]bool{}, map[[2]int]bool{}
	sent, cur := again(s), again(c)
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
