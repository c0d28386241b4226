package rank

import (
	"fmt"
	"strings"
	"testing"
)

// sentView is what a client has sent while something else was stored.
func sentView(version int64, body string) Candidate {
	return Candidate{Revision: at(version, body), Spent: true, View: true}
}

func TestContentShowsWhetherAClientWroteFromMemory(t *testing.T) {
	cs := []Candidate{
		sentView(2, `{"lines":["apples","bread"],"note":"fragile, please call before"}`),
		heldAt(2, `{"lines":["bread","milk"],"note":"leave it at the neighbour's door"}`),
	}
	for name, c := range map[string]struct {
		sent string
		want Memory
	}{
		"what only the view has":          {`{"lines":["apples","bread","eggs"],"note":"fragile, please call before"}`, FromMemory},
		"what only the held revision has": {`{"lines":["bread","milk","eggs"],"note":"leave it at the neighbour's door"}`, FromRead},
		"something else":                  {`{"lines":["bread"],"note":""}`, MemoryUnknown},
	} {
		if got := Likeliest(cs, Sent{Body: []byte(c.sent)}).Memory; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	little := []Candidate{sentView(2, `{"on":true,"at":"north"}`), heldAt(3, `{"on":false,"at":"south"}`)}
	for _, sent := range []string{`{"on":true,"at":"east"}`, `{"on":false,"at":"west"}`} {
		if got := Likeliest(little, Sent{Body: []byte(sent)}).Memory; got != MemoryUnknown {
			t.Errorf("only the flag of %s shows it: %v", sent, got)
		}
	}
	same := []Candidate{sentView(2, `{"n":1}`), heldAt(3, `{"n":1}`)}
	if got := Likeliest(same, Sent{Body: []byte(`{"n":2}`)}).Memory; got != MemoryUnknown {
		t.Errorf("both are the same: %v", got)
	}
	if got := Likeliest(cs[:1], Sent{Body: []byte(`{"lines":["apples"]}`)}).Memory; got != MemoryUnknown {
		t.Errorf("nobody has read anything: %v", got)
	}
}

// One client has read 2, and another one has sent what is in memory. A bare count doesn't tell which of the two has counted.
func TestHabitsTellHowLikelyAClientWritesFromMemory(t *testing.T) {
	view, held := sentView(1, `{"count":11,"by":"adams"}`), heldAt(2, `{"count":11,"by":"bob"}`)
	sent := Sent{Body: []byte(`{"count":12,"by":"adams"}`)}
	learn := func(m Memory, n int) {
		var p Patterns
		for range n {
			p.Learn(&Choice{Memory: m})
		}
		sent.Patterns = &p
	}
	for _, c := range []struct {
		memory Memory
		times  int
		want   int
	}{{FromRead, 100, 1}, {FromMemory, 30, 0}} {
		learn(c.memory, c.times)
		if got := Likeliest([]Candidate{view, held}, sent); got.Best != c.want || !got.Ambiguous {
			t.Errorf("after %d of %v: %+v", c.times, c.memory, got)
		}
	}
}

// What nobody holds is never certain, however often clients write from memory, and however unlikely all else is.
func TestAWriteFromMemoryIsAlwaysAmbiguous(t *testing.T) {
	var p Patterns
	for range 30 {
		p.addMemory(FromMemory)
	}
	cs := []Candidate{
		sentView(2, `{"lines":["apples","bread"],"note":"fragile, please call before"}`),
		heldAt(2, `{"lines":["bread","milk"],"note":"leave it at the neighbour's door"}`),
	}
	sent := Sent{Body: []byte(`{"lines":["apples","bread","eggs"],"note":"fragile, please call before"}`), Patterns: &p}
	if got := Likeliest(cs, sent); got.Best != 0 || !got.Ambiguous || got.Certain {
		t.Errorf("%+v", got)
	}
}

// A candidate that needs far too many changes isn't the base.
func TestWhatIsFarShowsMemory(t *testing.T) {
	sizes := map[string]int{"a": 100, "b": 120} // the candidate of the sent size says how many changes are too many
	long := func(prefix string) string {
		var b strings.Builder
		for i := range sizes[prefix] {
			fmt.Fprintf(&b, `"%s%d":%d,`, prefix, i, i)
		}
		return `{` + b.String() + `"n":1}`
	}
	cs := []Candidate{sentView(2, long("a")), heldAt(2, long("b"))}
	for prefix, want := range map[string]Memory{"a": FromMemory, "b": FromRead} {
		body := strings.Replace(long(prefix), `"n":1`, `"n":2`, 1)
		if got := Likeliest(cs, Sent{Body: []byte(body)}).Memory; got != want {
			t.Errorf("%s: %v, want %v", prefix, got, want)
		}
	}
}

func TestThePriceOfMemoryFollowsWhatClientsDo(t *testing.T) {
	if got := (*Patterns)(nil).priceOfMemory(); got != spent {
		t.Errorf("nothing is known: %d", got)
	}
	var p Patterns
	for _, step := range []struct {
		memory Memory
		n      int
		want   int
	}{
		{MemoryUnknown, 50, spent},
		{FromRead, 8, spent},
		{FromMemory, 5, 8},
		{FromMemory, 1000, leastMemory},
		{FromRead, 1000, spent}, // what was long ago counts less and less
	} {
		for range step.n {
			p.addMemory(step.memory)
		}
		if got := p.priceOfMemory(); got != step.want {
			t.Errorf("after %d of %v: %d, want %d", step.n, step.memory, got, step.want)
		}
	}
}

// A view that is old isn't compared if the newer revisions are large.
func TestWhatIsntComparedShowsNothingOfMemory(t *testing.T) {
	large := func(n int) string {
		var b strings.Builder
		for i := range 9000 {
			fmt.Fprintf(&b, `"k%d":"%d and %d",`, i, n, i)
		}
		return `{` + b.String() + `"n":1}`
	}
	cs := []Candidate{sentView(2, large(1)), heldAt(3, large(2)), heldAt(4, large(3))}
	for n, body := range []string{large(1), large(3)} {
		body = strings.Replace(body, `"n":1`, `"n":2`, 1)
		if got := Likeliest(cs, Sent{Body: []byte(body)}).Memory; got != MemoryUnknown {
			t.Errorf("%d: %v", n, got)
		}
	}
}
