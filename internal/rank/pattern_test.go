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
