package rank

import (
	"fmt"
	"strings"
	"testing"
)

// Whoever takes out a job counts it. A client that does so takes the same job as another one, and hasn't only taken it out.
func TestWhatClientsDoTogetherTellsTheBase(t *testing.T) {
	var habits Patterns
	habits.learn(t, `{"jobs":["mail to ada","mail to bob"],"done":0}`, `{"jobs":["mail to bob"],"done":1}`)
	habits.learn(t, `{"jobs":["mail to bob"],"done":1}`, `{"jobs":["mail to bob","mail to eve"],"done":1}`)
	cs := []Candidate{heldAt(1, `{"jobs":["mail to joe","mail to tim"],"done":4}`), heldAt(2, `{"jobs":["mail to joe","mail to tim"],"done":5}`)}
	sent := `{"jobs":["mail to tim"],"done":5}`
	habits.turnToOlder(t, cs, sent)
}

// A sale from one bin is like a sale from another bin: the count goes down. So where nobody gives back, a client has sold three, although
// another one that sold four may have given back one.
func TestWhatClientsDoToOneEntryOfAMapTheyDoToAnother(t *testing.T) {
	var habits Patterns
	habits.learn(t, `{"bins":{"a":{"qty":9},"b":{"qty":9},"c":{"qty":9}}}`, `{"bins":{"a":{"qty":8},"b":{"qty":9},"c":{"qty":9}}}`)
	habits.learn(t, `{"bins":{"a":{"qty":9},"b":{"qty":9},"c":{"qty":9}}}`, `{"bins":{"a":{"qty":9},"b":{"qty":7},"c":{"qty":9}}}`)
	cs := []Candidate{
		heldAt(1, `{"bins":{"a":{"qty":9},"b":{"qty":9},"c":{"qty":9}}}`),
		heldAt(2, `{"bins":{"a":{"qty":9},"b":{"qty":9},"c":{"qty":5}}}`),
	}
	sent := `{"bins":{"a":{"qty":9},"b":{"qty":9},"c":{"qty":6}}}`
	habits.turnToOlder(t, cs, sent)
}

// That clients move what is in a map doesn't say from where: what is no longer at the old place was moved on from the new one.
func TestTheHabitOfMovingDoesNotSayFromWhere(t *testing.T) {
	var habits Patterns
	habits.learn(t, `{"keys":{"ada":{"role":"owner"},"eve":{"role":"owner"}}}`, `{"keys":{"bob":{"role":"owner"},"eve":{"role":"owner"}}}`)
	sent := Sent{Body: []byte(`{"keys":{"joe":{"role":"owner"},"eve":{"role":"owner"}}}`), Patterns: &habits}
	got := Likeliest([]Candidate{
		heldAt(1, `{"keys":{"kim":{"role":"owner"},"eve":{"role":"owner"}}}`),
		heldAt(2, `{"keys":{"max":{"role":"owner"},"eve":{"role":"owner"}}}`),
	}, sent)
	if got.Best != 1 {
		t.Errorf("%+v, want the newer one", got)
	}
}

// A pattern says how many entries a change touches, and not which ones. An object that holds anything besides objects isn't a map. Of a
// number, it says whether that was moved by one.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		base, one, other string
		same             bool
	}{
		{`{"m":{"a":{"n":1},"b":{"n":1}}}`, `{"m":{"a":{"n":2},"b":{"n":1}}}`, `{"m":{"a":{"n":1},"b":{"n":2}}}`, true},
		{`{"m":{"a":{"n":1},"b":{"n":1}}}`, `{"m":{"a":{"n":2},"b":{"n":1}}}`, `{"m":{"a":{"n":2},"b":{"n":2}}}`, false},
		{`{"m":{"a":{"n":1},"b":{"k":1}}}`, `{"m":{"a":{"n":2},"b":{"k":1}}}`, `{"m":{"a":{"n":1},"b":{"k":2}}}`, false},
		{`{"m":{"a":{"n":1},"b":1}}`, `{"m":{"a":{"n":2},"b":1}}`, `{"m":{"a":{"n":1},"b":2}}`, false},
		{`{"m":{"a":1,"b":1}}`, `{"m":{"a":2,"b":1}}`, `{"m":{"a":1,"b":2}}`, false},
		{`{"n":10}`, `{"n":11}`, `{"n":12}`, false},
		{`{"n":10}`, `{"n":11}`, `{"n":9}`, false},
		{`{"n":10}`, `{"n":12}`, `{"n":18}`, true},
		{`{"n":10}`, `{"n":12}`, `{"n":8}`, false},
		{`[{"id":1,"n":1},{"id":2,"n":1}]`, `[{"id":1,"n":2},{"id":2,"n":1}]`, `[{"id":1,"n":1},{"id":2,"n":2}]`, true},
		{`[{"id":1,"n":1},{"id":2,"n":1}]`, `[{"id":1,"n":2},{"id":2,"n":1}]`, `[{"id":1,"n":2},{"id":2,"n":2}]`, false},
	} {
		patternOf := func(sent string) uint64 {
			got := Likeliest([]Candidate{heldAt(1, `{"d":`+c.base+`}`)}, Sent{Body: []byte(`{"d":` + sent + `}`)})
			if !got.Certain {
				t.Fatalf("%s: %+v", sent, got)
			}
			return got.Pattern
		}
		if same := patternOf(c.one) == patternOf(c.other); same != c.same {
			t.Errorf("%s: %s and %s have the same pattern: %v", c.base, c.one, c.other, same)
		}
	}
}

// A part that holds one entry of a map doesn't show that there are others. The candidate does.
func TestPatternsOfPartsOfMaps(t *testing.T) {
	base := heldAt(1, `{"m":{"a":{"n":1},"b":{"n":1}}}`)
	patternOf := func(sent string) uint64 {
		return Likeliest([]Candidate{base}, Sent{Body: []byte(sent), Part: true}).Pattern
	}
	if a, b := patternOf(`{"m":{"a":{"n":2}}}`), patternOf(`{"m":{"b":{"n":2}}}`); a != b || a == 0 {
		t.Errorf("the patterns are %x and %x", a, b)
	}
}

// Where clients take out tags, to take out the one that another has just put in is likelier than to put in the same.
func TestWhatClientsTakeOutByHabitCostsLittle(t *testing.T) {
	var habits Patterns
	habits.learn(t, `{"tags":["sea","summer","holiday"]}`, `{"tags":["sea","holiday"]}`)
	habits.learn(t, `{"tags":["sea"]}`, `{"tags":["sea","winter"]}`)
	cs := []Candidate{heldAt(1, `{"tags":["sea"]}`), heldAt(2, `{"tags":["sea","sand"]}`), heldAt(3, `{"tags":["sea","sand","falcon-lantern"]}`)}
	sent := Sent{Body: []byte(`{"tags":["sea","sand"]}`)}
	if got := Likeliest(cs, sent); got.Best == 2 {
		t.Errorf("%+v: the habits make no difference", got)
	}
	sent.Patterns = &habits
	if got := Likeliest(cs, sent); got.Best != 2 || !got.Ambiguous {
		t.Errorf("%+v, want the newest", got)
	}
	two := append(cs, heldAt(4, `{"tags":["sea","sand","falcon-lantern","amber-basil"]}`))
	if got := Likeliest(two, sent); got.Best == 3 {
		t.Errorf("%+v: nobody takes out two", got)
	}
}

// turnToOlder checks that what was sent seems to be made from the second candidate, and with the habits from the first, the older one.
func (p *Patterns) turnToOlder(t *testing.T, cs []Candidate, body string) {
	t.Helper()
	sent := Sent{Body: []byte(body)}
	if got := Likeliest(cs, sent); got.Best != 1 {
		t.Errorf("%+v: the habits make no difference", got)
	}
	sent.Patterns = p
	if got := Likeliest(cs, sent); got.Best != 0 || !got.Ambiguous {
		t.Errorf("%+v, want the older one", got)
	}
}

// learn has the clients do what leads from one document to another, and no other document looks like it.
func (p *Patterns) learn(t *testing.T, base, sent string) {
	t.Helper()
	for range 8 {
		got := Likeliest([]Candidate{heldAt(1, base), heldAt(2, `{"something":"else, and far away"}`)}, Sent{Body: []byte(sent), Patterns: p})
		if got.Best != 0 || !got.Certain {
			t.Fatalf("%s: %+v", sent, got)
		}
		p.add(got.Pattern)
	}
}

func TestRarePatternsAreDear(t *testing.T) {
	var p Patterns
	if got, _ := p.price(1); got != 2 {
		t.Errorf("%d of what isn't known", got)
	}
	for range 90 {
		p.add(1)
	}
	for range 10 {
		p.add(2)
	}
	often, habit := p.price(1)
	seldom, _ := p.price(2)
	never, another := p.price(3)
	if often != 0 || seldom <= often || never <= seldom || !habit || another {
		t.Errorf("%d (%v), %d and %d (%v)", often, habit, seldom, never, another)
	}
	for range 4 * enoughChanges {
		p.add(3)
	}
	if never, _ = p.price(1); never <= seldom {
		t.Errorf("%d: old habits stay", never)
	}
}

// Where each change is another one, that is the habit.
func TestNewPatternsCostLittleWhereAllAreNew(t *testing.T) {
	var p Patterns
	for i := range uint64(1000) {
		p.add(i)
	}
	old, _ := p.price(999)
	if other, _ := p.price(1_000_000); old != other {
		t.Errorf("%d, and %d of a new one", old, other)
	}
}

// In a list of events, names repeat: the code of an event says what has happened. A new document's list is too short to show that. The long
// list of another document of the index has shown it.
func TestNamesThatRepeatInOneDocumentIdentifyNothingInTheNext(t *testing.T) {
	event := func(code string, n int) string {
		return fmt.Sprintf(`{"code":%q,"at":"2026-01-02T03:04:%02d.678Z"}`, code, n)
	}
	events := func(all ...string) string { return `{"events":[` + strings.Join(all, ",") + `]}` }
	var long []string
	for n := range minRepeated {
		long = append(long, event([]string{"scan", "depart", "arrive"}[n%3], n))
	}
	var habits Patterns
	learn := func(held []Candidate, body string) {
		c := Likeliest(held, Sent{Body: []byte(body), Patterns: &habits})
		habits.Learn(&c)
	}
	next := []Candidate{heldAt(1, events()), heldAt(2, events(event("scan", 20)))}
	sent := Sent{Body: []byte(events(event("scan", 30))), Patterns: &habits}
	short := long[:minRepeated-1]
	learn([]Candidate{heldAt(1, events(short[1:]...)), heldAt(2, events(short...))}, events(short...))
	if got := Likeliest(next, sent).Best; got != 1 {
		t.Errorf("before anything shows how codes are used: %d, want 1: an entry with that code has got another time", got)
	}
	learn([]Candidate{heldAt(1, events(long[1:]...)), heldAt(2, events(short...))}, events(long...))
	if got := Likeliest(next, sent).Best; got != 0 {
		t.Errorf("once the codes of a long list have repeated: %d, want 0: the client has put in an event", got)
	}
	var unlike []string
	for n := range minRepeated {
		unlike = append(unlike, event(fmt.Sprintf("c%d", n), n))
	}
	for range 2 { // what the names of a long list have disproved isn't learnt again
		learn([]Candidate{heldAt(1, events(unlike[1:]...)), heldAt(2, events(unlike...))}, events(unlike...))
		if got := Likeliest(next, sent).Best; got != 1 {
			t.Errorf("once the codes of a long list have told all its entries apart: %d, want 1", got)
		}
		learn([]Candidate{heldAt(1, events(long[1:]...)), heldAt(2, events(short...))}, events(long...))
	}
	sent.Keys = NewKeys([]string{"code"})
	if got := Likeliest(next, sent).Best; got != 1 {
		t.Errorf("if the rule names the code: %d, want 1", got)
	}
}

// If a new kind of lists took the place of an old one, each choice would make all digests anew.
func TestRepeatedNamesAreBounded(t *testing.T) {
	var habits Patterns
	for kind := uint64(1); kind <= maxRepeated+1; kind++ {
		for range 2 {
			habits.Learn(&Choice{Repeats: kind})
		}
	}
	if got, want := habits.repeatedNames(), [maxRepeated]uint64{1, 2, 3, 4}; got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if got := (*Patterns)(nil).repeatedNames(); got != [maxRepeated]uint64{} {
		t.Errorf("%d without patterns", got)
	}
}
