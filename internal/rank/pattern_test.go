package rank

import "testing"

// Whoever takes out a job counts it. A client that does so takes the same job as another one, and hasn't only taken it out.
func TestWhatClientsDoTogetherTellsTheBase(t *testing.T) {
	var habits Patterns
	habits.learn(t, `{"jobs":["mail to ada","mail to bob"],"done":0}`, `{"jobs":["mail to bob"],"done":1}`)
	habits.learn(t, `{"jobs":["mail to bob"],"done":1}`, `{"jobs":["mail to bob","mail to eve"],"done":1}`)
	cs := []Candidate{heldAt(1, `{"jobs":["mail to joe","mail to tim"],"done":4}`), heldAt(2, `{"jobs":["mail to joe","mail to tim"],"done":5}`)}
	sent := Sent{Body: []byte(`{"jobs":["mail to tim"],"done":5}`)}
	if got := Likeliest(cs, sent); got.Best != 1 {
		t.Errorf("%+v: the habits make no difference", got)
	}
	sent.Patterns = &habits
	if got := Likeliest(cs, sent); got.Best != 0 || !got.Ambiguous {
		t.Errorf("%+v, want the older one", got)
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

// learn has the clients do what leads from one document to another, and no other document looks like it.
func (p *Patterns) learn(t *testing.T, base, sent string) {
	t.Helper()
	for range 8 {
		p.Add(p.learnOnce(t, base, sent))
	}
}

// learnOnce returns the pattern of what leads from one document to another.
func (p *Patterns) learnOnce(t *testing.T, base, sent string) Pattern {
	t.Helper()
	got := Likeliest([]Candidate{heldAt(1, base), heldAt(2, `{"something":"else, and far away"}`)}, Sent{Body: []byte(sent), Patterns: p})
	if got.Best != 0 || !got.Certain {
		t.Fatalf("%s: %+v", sent, got)
	}
	return got.Pattern
}

// places is a pattern of places that others don't share, of the usual form.
func places(n uint64) Pattern { return Pattern{places: n, names: 1, form: 1} }

func TestRarePatternsAreDear(t *testing.T) {
	var p Patterns
	if got, _ := p.price(places(1), 0); got != 6 {
		t.Errorf("%d of what isn't known", got)
	}
	for range 90 {
		p.Add(places(1))
	}
	for range 10 {
		p.Add(places(2))
	}
	often, habit := p.price(places(1), 3)
	seldom, _ := p.price(places(2), 3)
	never, another := p.price(places(3), 3)
	none, _ := p.price(Pattern{}, 3)
	odd, _ := p.price(Pattern{places: 3, names: 2, form: 2}, 3)
	if often != 0 || seldom <= often || never <= seldom || odd <= never || none <= seldom || !habit || another {
		t.Errorf("%d (%v), %d, %d (%v), %d and %d", often, habit, seldom, never, another, none, odd)
	}
	for range 4 * enoughChanges {
		p.Add(places(3))
	}
	if never, _ = p.price(places(1), 3); never <= seldom {
		t.Errorf("%d: old habits stay", never)
	}
}

// Where each change is another one, that is the habit.
func TestNewPatternsCostLittleWhereAllAreNew(t *testing.T) {
	var p Patterns
	for i := range uint64(1000) {
		p.Add(places(i + 2))
	}
	old, _ := p.price(places(1001), 0)
	if other, _ := p.price(places(1_000_000), 0); old != other {
		t.Errorf("%d, and %d of a new one", old, other)
	}
}

// Clients set two keys at a time, and each time others. A base from which one would have been set is the wrong one, though it is nearer.
func TestHowMuchClientsChangeTellsTheBase(t *testing.T) {
	var habits Patterns
	for key := range uint64(12) {
		set := habits.learnOnce(t, `{"settings":{"font":"mono","wrap":true,"bell":true}}`, `{"settings":{"font":"mono","wrap":false,"bell":false}}`)
		habits.Add(Pattern{places: set.places + key, names: set.names + key, form: set.form})
	}
	cs := []Candidate{
		heldAt(1, `{"settings":{"font":"mono","wrap":true,"tab":4,"bell":true,"ruler":true}}`),
		heldAt(2, `{"settings":{"font":"mono","wrap":true,"tab":4,"bell":false,"ruler":true}}`),
		heldAt(3, `{"settings":{"font":"mono","wrap":true,"tab":4,"bell":false,"ruler":true,"lines":true}}`),
	}
	sent := Sent{Body: []byte(`{"settings":{"font":"mono","wrap":true,"tab":4,"bell":false,"ruler":false}}`)}
	if got := Likeliest(cs, sent); got.Best != 1 {
		t.Errorf("%+v: the habits make no difference", got)
	}
	sent.Patterns = &habits
	if got := Likeliest(cs, sent); got.Best != 0 || !got.Ambiguous {
		t.Errorf("%+v, want the one from which two keys were set", got)
	}
}
