package rank

import "testing"

// Whoever takes out a job counts it. A client that does so takes the same job as another one, and hasn't only taken it out.
func TestWhatClientsDoTogetherTellsTheBase(t *testing.T) {
	var habits Patterns
	var cs []Candidate
	for _, c := range []struct{ base, sent string }{
		{`{"jobs":["mail to ada","mail to bob"],"done":0}`, `{"jobs":["mail to bob"],"done":1}`},
		{`{"jobs":["mail to bob"],"done":1}`, `{"jobs":["mail to bob","mail to eve"],"done":1}`},
	} {
		for range 8 {
			got := Likeliest([]Candidate{heldAt(1, c.base), heldAt(2, `{"something":"else, and far away"}`)}, Sent{Body: []byte(c.sent), Patterns: &habits})
			if got.Best != 0 || !got.Certain {
				t.Fatalf("%s: %+v", c.sent, got)
			}
			habits.Add(got.Pattern)
		}
	}
	cs = []Candidate{heldAt(1, `{"jobs":["mail to joe","mail to tim"],"done":4}`), heldAt(2, `{"jobs":["mail to joe","mail to tim"],"done":5}`)}
	sent := Sent{Body: []byte(`{"jobs":["mail to tim"],"done":5}`)}
	if got := Likeliest(cs, sent); got.Best != 1 {
		t.Errorf("%+v: the habits make no difference", got)
	}
	sent.Patterns = &habits
	if got := Likeliest(cs, sent); got.Best != 0 || !got.Ambiguous {
		t.Errorf("%+v, want the older one", got)
	}
}

func TestRarePatternsAreDear(t *testing.T) {
	var p Patterns
	if got := p.price(1); got != 2 {
		t.Errorf("%d of what isn't known", got)
	}
	for range 90 {
		p.Add(1)
	}
	for range 10 {
		p.Add(2)
	}
	often, seldom, never := p.price(1), p.price(2), p.price(3)
	if often != 0 || seldom <= often || never <= seldom {
		t.Errorf("%d, %d and %d", often, seldom, never)
	}
	for range 4 * enoughChanges {
		p.Add(3)
	}
	if often, never = p.price(3), p.price(1); often != 0 || never <= seldom {
		t.Errorf("%d and %d: old habits stay", often, never)
	}
}

// Where each change is another one, that is the habit.
func TestNewPatternsCostLittleWhereAllAreNew(t *testing.T) {
	var p Patterns
	for i := range uint64(1000) {
		p.Add(i)
	}
	if old, other := p.price(999), p.price(1_000_000); old != other {
		t.Errorf("%d, and %d of a new one", old, other)
	}
}
