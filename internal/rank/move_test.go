package rank

import (
	"testing"
)

// One client moves something on, and somebody else still holds what was there before that.
func TestWhatIsMovedOnWasSeenWhereItIs(t *testing.T) {
	const job = `{"cmd":"make","host":null}`
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       int
	}{
		"a key gets another name": {
			[]Candidate{heldAt(1, `{"v0":{"a":1},"title":"x"}`), heldAt(2, `{"v1":{"a":1},"title":"x"}`)}, `{"v2":{"a":1},"title":"x"}`, 1},
		"what is owned passes to others": {
			[]Candidate{heldAt(1, `{"by":{"ann":{"role":"owner"},"zoe":{}}}`), heldAt(2, `{"by":{"bob":{"role":"owner"},"zoe":{}}}`)},
			`{"by":{"cat":{"role":"owner"},"zoe":{}}}`, 1},
		"a job runs, and is done": {
			[]Candidate{heldAt(1, `{"queued":{"job-1":`+job+`},"runs":{},"done":{}}`), heldAt(2, `{"queued":{},"runs":{"job-1":`+job+`},"done":{}}`)},
			`{"queued":{},"runs":{},"done":{"job-1":` + job + `}}`, 1},
		"a job is queued, and runs": {
			[]Candidate{heldAt(1, `{"queued":{},"runs":{}}`), heldAt(2, `{"queued":{"job-1":`+job+`},"runs":{}}`)},
			`{"queued":{},"runs":{"job-1":` + job + `}}`, 1},
		"a card goes from list to list": {
			[]Candidate{heldAt(1, `{"todo":[{"id":1,"t":"x"}],"doing":[],"done":[]}`), heldAt(2, `{"todo":[],"doing":[{"id":1,"t":"x"}],"done":[]}`)},
			`{"todo":[],"doing":[],"done":[{"id":1,"t":"x"}]}`, 1},
		"so does a name": {
			[]Candidate{heldAt(1, `{"todo":["ann"],"doing":[],"done":[]}`), heldAt(2, `{"todo":[],"doing":["ann"],"done":[]}`)},
			`{"todo":[],"doing":[],"done":["ann"]}`, 1},
		"two workers take the same job": {
			[]Candidate{heldAt(1, `{"jobs":{"job-1":`+job+`},"by":{}}`), heldAt(2, `{"jobs":{},"by":{"ann":{"did":"job-1"}}}`)},
			`{"jobs":{},"by":{"bob":{"did":"job-1"}}}`, 0},
		"two clients each add a key": {
			[]Candidate{heldAt(1, `{"by":{"zoe":{}}}`), heldAt(2, `{"by":{"ann":{},"zoe":{}}}`)}, `{"by":{"bob":{},"zoe":{}}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}); got.Best != c.want {
				t.Errorf("%+v, want %d", got, c.want)
			}
		})
	}
}

// What step has made of a place and a key, keyOf takes apart.
func TestANameIsFoundInAPlace(t *testing.T) {
	for _, key := range []uint64{0, 1, 42, 1 << 63, ^uint64(0), wholeKey} {
		if got := keyOf(elementKey, step(elementKey, key)); got != key {
			t.Errorf("%x, want %x", got, key)
		}
	}
}
