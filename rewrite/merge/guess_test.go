package merge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// guessed merges with a base that is a guess.
func guessed(t *testing.T, m *Merger, base, sent, current string) Result {
	t.Helper()
	r, err := m.Guessing().Merge([]byte(base), []byte(sent), []byte(current))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sums(t rapid.TB) *Merger {
	m, err := New(Sent, []PathRule{{Path: "/n", Strategy: Sum}, {Path: "/log", Strategy: Append}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The base is older than what the client has seen: it has put in 4 only.
func TestAnEchoOfSeveralElementsCountsOnce(t *testing.T) {
	const base, sent, current = `{"%s":[]}`, `{"%s":[1,2,3,4]}`, `{"%s":[1,2,3,5]}`
	for _, list := range []string{"list", "log"} {
		doc := func(f string) string { return fmt.Sprintf(f, list) }
		m := sums(t)
		if r := guessed(t, m, doc(base), doc(sent), doc(current)); string(r.Doc) != doc(`{"%s":[1,2,3,5,4]}`) || !r.Echo {
			t.Errorf("%s, echo %t", r.Doc, r.Echo)
		}
		r, err := m.Merge([]byte(doc(base)), []byte(doc(sent)), []byte(doc(current)))
		if string(r.Doc) != doc(`{"%s":[1,2,3,5,1,2,3,4]}`) || r.Echo || err != nil {
			t.Errorf("a base that is named: %s, echo %t, %v", r.Doc, r.Echo, err)
		}
	}
}

func TestTwoClientsMayPutInTheSameOnce(t *testing.T) {
	if r := guessed(t, sums(t), `{"l":[1]}`, `{"l":[1,6]}`, `{"l":[1,6]}`); string(r.Doc) != `{"l":[1,6,6]}` || r.Echo {
		t.Errorf("%s, echo %t", r.Doc, r.Echo)
	}
}

// Others have moved the number from 0 to 1000 one by one. The client has seen nearly all of that.
func TestAStepOutOfProportionCountsOnce(t *testing.T) {
	m := sums(t)
	for range 3 {
		if r := guessed(t, m, `{"n":0}`, `{"n":1}`, `{"n":2}`); string(r.Doc) != `{"n":3}` || r.Echo {
			t.Fatalf("%s, echo %t", r.Doc, r.Echo)
		}
	}
	for _, c := range []struct {
		base, sent, current, want int
		echo                      bool
	}{
		{0, 999, 1000, 1000, true},
		{0, 1001, 1000, 1001, true},
		{0, -999, -1000, -1000, true},
		{0, 1000, 3, 1003, false}, // so far only the client has moved it
		{0, 3, 1000, 1003, false}, // so far only the others have
		{0, 1000, -1000, 0, false},
		{0, 4, 4, 8, false},
	} {
		doc := func(n int) string { return `{"n":` + strconv.Itoa(n) + `}` }
		r := guessed(t, m, doc(c.base), doc(c.sent), doc(c.current))
		if string(r.Doc) != doc(c.want) || r.Echo != c.echo {
			t.Errorf("%+v: %s, echo %t", c, r.Doc, r.Echo)
		}
		if r, err := m.Merge([]byte(doc(c.base)), []byte(doc(c.sent)), []byte(doc(c.current))); err != nil ||
			string(r.Doc) != doc(c.current+c.sent-c.base) {
			t.Errorf("%+v, a base that is named: %s, %v", c, r.Doc, err)
		}
	}
}

func TestLargerStepsBecomeUsual(t *testing.T) {
	m := sums(t)
	for range 100 {
		guessed(t, m, `{"n":0}`, `{"n":1}`, `{"n":1}`)
	}
	for n := 0; ; n++ {
		if r := guessed(t, m, `{"n":0}`, `{"n":500}`, `{"n":500}`); !r.Echo {
			break
		} else if n == maxSteps {
			t.Fatal("never")
		}
	}
}

func TestExplainLeavesNoTrace(t *testing.T) {
	m := sums(t).Guessing()
	if _, _, err := m.Explain([]byte(`{"n":0}`), []byte(`{"n":1}`), []byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	for i := range m.steps {
		if len(m.steps[i].last) != 0 {
			t.Error("a step is remembered of what was only explained")
		}
	}
}

// Whatever the base is, a merge with a guess leaves a number between current and what was sent, or beyond by a usual step, and a list
// no longer than if it had each element as often as current or the client, whoever has it more often, and one. A number may be farther,
// within a wider bound, where the client has none of what others have put into the list.
func TestAGuessAddsOneEchoAtMost(t *testing.T) {
	values := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		m := sums(t)
		largest := 0
		for range 20 {
			b := rapid.IntRange(-9, 9).Draw(t, "b")
			s, c := b+rapid.IntRange(1, 9).Draw(t, "s"), b+rapid.IntRange(1, 9).Draw(t, "c")
			largest = max(largest, min(s-b, c-b))
			if _, err := m.Guessing().Merge(number(b), number(s), number(c)); err != nil {
				t.Fatal(err)
			}
		}
		name := rapid.SampledFrom([]string{"list", "log"}).Draw(t, "name")
		var b, s, c document
		for _, d := range []*document{&b, &s, &c} {
			d.n, d.name, d.list = rapid.IntRange(-1e6, 1e6).Draw(t, "n"), name, values.Draw(t, name)
		}
		r, err := m.Guessing().Merge(b.json(), s.json(), c.json())
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(r.Doc, &got); err != nil {
			t.Fatal(err)
		}
		doubled := usually
		if s.lacks(&b, &c) {
			doubled = unseen
		}
		n, err := strconv.Atoi(string(got["n"]))
		switch {
		case err != nil:
			t.Fatal(err)
		case n < min(s.n, c.n)-largest<<doubled || n > max(s.n, c.n)+largest<<doubled:
			t.Fatalf("%s, %s, %s: %s; steps up to %d", b.json(), s.json(), c.json(), r.Doc, largest)
		}
		var list []int
		if err := json.Unmarshal(got[name], &list); err != nil {
			t.Fatal(err)
		}
		most := 1
		for e := range 10 {
			most += max(count(s.list, e), count(c.list, e))
		}
		if len(list) > most {
			t.Fatalf("%s, %s, %s: %s", b.json(), s.json(), c.json(), r.Doc)
		}
	})
}

// lacks reports whether c has something in its list that b hasn't, and d has nothing of that.
func (d *document) lacks(b, c *document) bool {
	longer := len(c.list) > len(b.list)
	for e := range 10 {
		was := count(b.list, e)
		longer = longer && (count(c.list, e) <= was || count(d.list, e) <= was)
	}
	return longer
}

type document struct {
	n    int
	name string
	list []int
}

func (d *document) json() []byte {
	list, _ := json.Marshal(append([]int{}, d.list...))
	return fmt.Appendf(nil, `{"n":%d,"%s":%s}`, d.n, d.name, list)
}

func number(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

func count(list []int, e int) (n int) {
	for _, x := range list {
		if x == e {
			n++
		}
	}
	return n
}
