package rank

import "testing"

func partOf(body string) Sent {
	return Sent{Body: []byte(body), Part: true}
}

// changing are the habits of clients whose parts hold what they change and nothing else.
func changing() *Patterns {
	var p Patterns
	for range 8 {
		p.addPart(PartChanges)
	}
	return &p
}

func TestPartsAreChangesOnceEnoughShowIt(t *testing.T) {
	var p Patterns
	for i, step := range []struct {
		part Part
		n    int
		want bool
	}{
		{PartChanges, 7, false}, // too few
		{PartUnknown, 9, false},
		{PartChanges, 25, true},
		{PartRestates, 2, true},  // a client that sets what is set already
		{PartRestates, 1, false}, // so many are clients that send more than they change
		{PartChanges, 100, true},
		{PartRestates, 20, false},
	} {
		for range step.n {
			p.addPart(step.part)
		}
		if got := p.partsAreChanges(); got != step.want {
			t.Errorf("step %d: parts are changes: %v", i, got)
		}
	}
	if (*Patterns)(nil).partsAreChanges() {
		t.Error("nothing is known")
	}
}

func TestAPartOfChangesHasNoBaseThatSaysThemAlready(t *testing.T) {
	cs := []Candidate{heldAt(1, `{"status":"open","by":"ada","n":1}`), heldAt(2, `{"status":"solved","by":"bob","n":2}`)}
	for name, c := range map[string]struct {
		part    string
		changes bool
		want    int
	}{
		"a status, set back":                        {`{"status":"open"}`, true, 1},
		"the same, while nothing is known of parts": {`{"status":"open"}`, false, 0},
		"two values":                                {`{"status":"open","by":"eve"}`, true, 1},
		"a part that says more than its changes":    {`{"status":"open","by":"bob"}`, true, 0},
	} {
		sent := partOf(c.part)
		if c.changes {
			sent.Patterns = changing()
		}
		if got := Likeliest(cs, sent); got.Best != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
	whole := Sent{Body: []byte(`{"status":"open","by":"ada","n":1}`), Patterns: changing()}
	if got := Likeliest(cs, whole); got.Best != 0 {
		t.Errorf("%+v: a document isn't a part", got)
	}
}

func TestPartsShowWhetherTheyAreChanges(t *testing.T) {
	open, solved := `{"status":"open","by":"ada","tags":["a"],"text":{"a":1}}`, `{"status":"solved","by":"bob","tags":["b"],"text":{"a":2}}`
	for name, c := range map[string]struct {
		candidates []Candidate
		part       string
		want       Part
	}{
		"news everywhere":                         {[]Candidate{heldAt(1, open), heldAt(2, solved)}, `{"status":"new","by":"eve"}`, PartChanges},
		"news in one revision":                    {[]Candidate{heldAt(1, open), heldAt(2, solved)}, `{"status":"open","text":{"a":1}}`, PartChanges},
		"nowhere news alone":                      {[]Candidate{heldAt(1, open), heldAt(2, solved)}, `{"status":"open","by":"bob"}`, PartRestates},
		"news in a revision that nobody has":      {[]Candidate{spentAt(1, open), heldAt(2, solved)}, `{"by":"bob"}`, PartRestates},
		"nobody has one":                          {[]Candidate{spentAt(1, open), spentAt(2, solved)}, `{"by":"bob"}`, PartUnknown},
		"a member is new":                         {[]Candidate{heldAt(1, open), heldAt(2, open)}, `{"more":1,"by":"bob"}`, PartUnknown},
		"a revision of before there were members": {[]Candidate{heldAt(1, `{}`), heldAt(2, solved)}, `{"status":"new","by":"bob"}`, PartRestates},
		"a list":      {[]Candidate{heldAt(1, open), heldAt(2, solved)}, `{"tags":["a"],"by":"eve"}`, PartUnknown},
		"no document": {[]Candidate{{}, heldAt(2, solved)}, `{"by":"bob"}`, PartRestates},
	} {
		if got := Likeliest(c.candidates, partOf(c.part)); got.Part != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
	if got := Likeliest([]Candidate{heldAt(1, open), heldAt(2, solved)}, Sent{Body: []byte(open)}); got.Part != PartUnknown {
		t.Errorf("%+v: a document isn't a part", got)
	}
}
