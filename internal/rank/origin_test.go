package rank

import "testing"

// own is what the session wrote last, which nobody has read.
func own(version int64, body string) Candidate {
	c := spentAt(version, body)
	c.Own = true
	return c
}

func TestContentShowsWhatAWriteWasMadeFrom(t *testing.T) {
	const older, newer = `{"tags":["harbor"],"note":"violet dragon"}`, `{"tags":["harbor","candle"],"note":"violet dragon"}`
	const ofNewer, ofOlder = `{"tags":["harbor","candle","maple"],"note":"violet dragon"}`, `{"tags":["harbor","maple"],"note":"violet dragon"}`
	foreignRead := heldAt(1, older)
	foreignRead.Foreign = true
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       Origin
	}{
		"it holds what the session wrote last":      {[]Candidate{heldAt(1, older), own(2, newer)}, ofNewer, OriginOwn},
		"it lacks that":                             {[]Candidate{heldAt(1, older), own(2, newer)}, ofOlder, OriginRead},
		"another program has the older one in hand": {[]Candidate{foreignRead, own(2, newer)}, ofNewer, OriginOwn},
		"somebody has read it":                      {[]Candidate{heldAt(1, older), heldAt(2, newer), own(2, newer)}, ofNewer, OriginUnknown},
		"somebody has read something newer":         {[]Candidate{own(1, older), heldAt(2, newer)}, ofNewer, OriginUnknown},
		"nothing is in hand":                        {[]Candidate{spentAt(1, older), own(2, newer)}, ofNewer, OriginUnknown},
		"the session hasn't written it":             {[]Candidate{heldAt(1, older), spentAt(2, newer)}, ofNewer, OriginUnknown},
		"it is the older one":                       {[]Candidate{heldAt(1, older), own(2, newer)}, older, OriginUnknown},
		"it is what the session wrote last":         {[]Candidate{heldAt(1, older), own(2, newer)}, newer, OriginUnknown},
		"somebody has found no document":            {[]Candidate{{}, heldAt(1, older), own(2, newer)}, ofNewer, OriginUnknown},
		"what has been read isn't known":            {[]Candidate{heldAt(1, ""), own(2, newer)}, ofNewer, OriginUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}); got.Origin != c.want {
				t.Errorf("%+v, want %d", got, c.want)
			}
		})
	}
}

// Who writes what a database holds has nothing of what it reads in hand, even where the document returns to that.
func TestAMirrorWritesFromWhatItWroteLast(t *testing.T) {
	cs := []Candidate{heldAt(1, `{"on":false,"n":1}`), own(2, `{"on":true,"n":1}`)}
	for mirrors, want := range map[bool]int{false: 0, true: 1} {
		got := Likeliest(cs, Sent{Body: []byte(`{"on":false,"n":2}`), Mirrors: mirrors})
		if got.Best != want {
			t.Errorf("mirrors %v: %+v", mirrors, got)
		}
	}
	read := append(cs, heldAt(2, `{"on":true,"n":1}`))
	read[1], read[2] = read[2], read[1]
	if got := Likeliest(read, Sent{Body: []byte(`{"on":true,"n":2}`), Mirrors: true}); got.Best != 1 {
		t.Errorf("%+v, want the read of what it wrote last, which is used up then", got)
	}
}
