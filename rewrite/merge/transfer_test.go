package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// card is a card of a board, and where it is: -1 is nowhere.
type card struct {
	column int
	marks  map[string]int // what each side has written on it
}

// A layout is how documents hold the columns of a board.
type layout struct {
	keyed bool // by name in an object, and not in a list
	empty any  // what they have in the place of a list without cards
}

// board renders cards in the columns of a board, in the order that each has.
func (l layout) board(order []int, cards map[int]card) []byte {
	type object = map[string]any
	var columns [3]any
	for i := range columns {
		columns[i] = l.empty
	}
	for _, n := range order {
		if c := cards[n]; c.column >= 0 {
			list, _ := columns[c.column].([]object)
			columns[c.column] = append(list, object{"id": n, "title": fmt.Sprint("card ", n), "marks": c.marks})
		}
	}
	doc := object{"todo": columns[0], "doing": columns[1], "done": columns[2]}
	if !l.keyed {
		var list []object
		for i, c := range columns {
			list = append(list, object{"name": fmt.Sprint("column ", i), "cards": c})
		}
		doc = object{"columns": list}
	}
	text, _ := json.Marshal(doc) // of maps, lists and texts, which always can be
	return text
}

// columnsOf reads a board, and lists for each card the columns in which it is.
func columnsOf(t rapid.TB, doc []byte) (columns map[int][]int, marks map[int]map[string]int) {
	type list []struct {
		ID    int
		Marks map[string]int
	}
	var b struct {
		Columns           []struct{ Cards list }
		Todo, Doing, Done list
	}
	if err := json.Unmarshal(doc, &b); err != nil {
		t.Fatal(err)
	}
	lists := []list{b.Todo, b.Doing, b.Done}
	for i, c := range b.Columns {
		lists[i] = c.Cards
	}
	columns, marks = map[int][]int{}, map[int]map[string]int{}
	for i, l := range lists {
		for _, c := range l {
			columns[c.ID], marks[c.ID] = append(columns[c.ID], i), c.Marks
		}
	}
	return columns, marks
}

// Both sides move cards to other columns, write on them, remove some, and change the order. No card is there twice, and none without what
// each side has written on it.
func TestAMovedCardIsThereOnceWithTheChangesOfBothSides(t *testing.T) {
	m, err := New(Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := layout{rapid.Bool().Draw(t, "keyed"), rapid.SampledFrom([]any{nil, []any{}}).Draw(t, "empty")}
		const n = 5
		order := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order")
		base := map[int]card{}
		for i := range n {
			base[i] = card{rapid.IntRange(0, 2).Draw(t, "column"), map[string]int{}}
		}
		change := func(side string) (map[int]card, []byte) {
			changed := map[int]card{}
			for i, c := range base {
				changed[i] = c
			}
			for range rapid.IntRange(0, 3).Draw(t, side+" moves") {
				i := rapid.IntRange(0, n-1).Draw(t, "card")
				changed[i] = card{rapid.IntRange(-1, 2).Draw(t, "to"), changed[i].marks}
			}
			for range rapid.IntRange(0, 3).Draw(t, side+" edits") {
				i := rapid.IntRange(0, n-1).Draw(t, "card")
				changed[i] = card{changed[i].column, map[string]int{side: 1}}
			}
			by := order
			if rapid.Bool().Draw(t, side+" sorts") {
				by = rapid.Permutation(order).Draw(t, "order")
			}
			return changed, l.board(by, changed)
		}
		from := l.board(order, base)
		sent, body := change("sent")
		cur, stored := change("current")
		r, err := m.Merge(from, body, stored)
		if err != nil {
			t.Fatal(err)
		}
		columns, marks := columnsOf(t, r.Doc)
		for i, b := range base {
			s, c := sent[i], cur[i]
			want := []int{c.column}
			if s.column != b.column && c.column != s.column {
				want = []int{s.column}
			}
			if s.column < 0 || c.column < 0 {
				if len(columns[i]) > 1 {
					t.Fatalf("card %d is in %v\n%s\n%s\n%s\n%s", i, columns[i], from, body, stored, r.Doc)
				}
				continue
			}
			if !slices.Equal(columns[i], want) || marks[i]["sent"] != s.marks["sent"] || marks[i]["current"] != c.marks["current"] {
				t.Fatalf("card %d is in %v with %v, want %v\n%s\n%s\n%s\n%s", i, columns[i], marks[i], want, from, body, stored, r.Doc)
			}
		}
	})
}

// What the client doesn't send stays as it is: a card can't be taken to a list that its part doesn't hold.
func TestAPartChangesNoCardInAListThatItDoesNotHold(t *testing.T) {
	m, err := New(Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	const (
		base    = `{"todo":[{"id":1,"text":"a","by":""}],"done":[]}`
		sent    = `{"todo":[{"id":1,"text":"b","by":""}],"done":[]}` // with the part {"todo": …}
		current = `{"todo":[],"done":[{"id":1,"text":"a","by":"Ann"}]}`
	)
	for _, test := range []struct {
		m    *Merger
		want string
	}{
		{m, `{"todo":[],"done":[{"id":1,"text":"b","by":"Ann"}]}`},
		{m.OfParts(), `{"todo":[{"id":1,"text":"b","by":""}],"done":[{"id":1,"text":"a","by":"Ann"}]}`},
	} {
		if r, err := test.m.Merge([]byte(base), []byte(sent), []byte(current)); err != nil || string(r.Doc) != test.want {
			t.Errorf("got %s, %v; want %s", r.Doc, err, test.want)
		}
	}
	in := func(lists string) []byte { return []byte(`{"lists":` + lists + `}`) }
	r, err := m.OfParts().Merge(
		in(`[{"name":"todo","cards":[{"id":1,"text":"a","by":""}]},{"name":"done","cards":[]}]`),
		in(`[{"name":"todo","cards":[{"id":1,"text":"b","by":""}]},{"name":"done","cards":[]}]`),
		in(`[{"name":"todo","cards":[]},{"name":"done","cards":[{"id":1,"text":"a","by":"Ann"}]}]`))
	if want := in(`[{"name":"todo","cards":[]},{"name":"done","cards":[{"id":1,"text":"b","by":"Ann"}]}]`); err != nil || string(r.Doc) != string(want) {
		t.Errorf("got %s, %v; want %s", r.Doc, err, want)
	}
}

func TestExplainNamesWhereAMovedCardWentAndWhatChangedInIt(t *testing.T) {
	m, err := New(Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, list, err := m.Explain(
		[]byte(`{"a":[{"id":1,"n":1,"t":"x"}],"b":[],"c":[]}`),
		[]byte(`{"a":[],"b":[{"id":1,"n":2,"t":"x"}],"c":[]}`),
		[]byte(`{"a":[],"b":[],"c":[{"id":1,"n":1,"t":"y"}]}`))
	if want := `{"a":[],"b":[{"id":1,"n":2,"t":"y"}],"c":[]}`; err != nil || string(r.Doc) != want {
		t.Fatalf("got %s, %v; want %s", r.Doc, err, want)
	}
	if !slices.Equal(r.Overwritten, []string{"/c/0"}) {
		t.Errorf("overwritten: %q", r.Overwritten)
	}
	i := slices.IndexFunc(list, func(d Decision) bool { return d.Path == "/c/0" })
	if i < 0 || list[i].Verdict != Overwritten || string(list[i].Result) != `{"id":1,"n":2,"t":"y"}` {
		t.Errorf("decisions: %+v", list)
	}
}

// A client that has seen the stored document, of which the base is older, sends all that others have put in. That a card has moved must not
// hide it.
func TestAMovedCardDoesNotHideThatTheClientHasSeenTheOthers(t *testing.T) {
	m, err := New(Sent, []PathRule{{Path: "/log", Strategy: Append}, {Path: "/n", Strategy: Sum}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Guessing().Merge(
		[]byte(`{"todo":[{"id":1,"t":"a","n":0}],"done":[],"log":["o"],"n":5}`),
		[]byte(`{"todo":[],"done":[{"id":1,"t":"a","n":2}],"log":["o","x","y"],"n":8}`),
		[]byte(`{"todo":[],"done":[{"id":1,"t":"a","n":2}],"log":["o","x"],"n":7}`))
	if want := `{"todo":[],"done":[{"id":1,"t":"a","n":2}],"log":["o","x","y"],"n":8}`; err != nil || string(r.Doc) != want || !r.Echo {
		t.Errorf("got %s, %v; want %s", r.Doc, err, want)
	}
}

// Each card was looked for from the beginning of its list: 20,000 took eight seconds.
//
// What counts is the work of the processor, and not the time: that also passes while others have the processor.
func TestManyMovedCardsTakeWorkInProportion(t *testing.T) {
	m, err := New(Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	work := func(n int) time.Duration {
		order, base, sent, cur := make([]int, n), map[int]card{}, map[int]card{}, map[int]card{}
		for i := range n {
			order[i], base[i], sent[i], cur[i] = i, card{column: 0}, card{column: 1}, card{2, map[string]int{"current": 1}}
		}
		l := layout{keyed: true, empty: []any{}}
		from, body, stored := l.board(order, base), l.board(order, sent), l.board(order, cur)
		least := time.Duration(math.MaxInt64)
		for range 3 {
			before := processorTime(t)
			if _, err := m.Merge(from, body, stored); err != nil {
				t.Fatal(err)
			}
			least = min(least, processorTime(t)-before)
		}
		return least
	}
	const few, times = 1500, 10
	if one, many := work(few), work(few*times); many > 4*times*one {
		t.Errorf("%d cards take %v of a processor, %d cards %v", few, one, few*times, many)
	}
}

// processorTime is how long processors have worked for the process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A board whose only cards are in one column has no lists in the others. A card that moves to one of them isn't doubled.
func TestACardMovesToAListThatWasNotThere(t *testing.T) {
	m, err := New(Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{``, `,"doing":null`, `,"doing":[]`} {
		base := `{"todo":[{"id":1,"title":"a","n":1}]` + none + `}`
		sent := `{"todo":null,"doing":[{"id":1,"title":"a","n":1}]}`
		cur := `{"todo":[{"id":1,"title":"a","n":2}]` + none + `}`
		r, err := m.Merge([]byte(base), []byte(sent), []byte(cur))
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := columnsOf(t, r.Doc)
		if got := columns[1]; len(got) != 1 || got[0] != 1 || !strings.Contains(string(r.Doc), `"n":2`) {
			t.Errorf("%s: %s", base, r.Doc)
		}
	}
}
