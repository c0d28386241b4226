package base

import (
	"testing"
	"time"

	"optimist/internal/rule"
)

// A write that isn't tried again needs no answers of the engine any more.
func TestAQuestionEndsWithTheTriesOfItsWrite(t *testing.T) {
	for name, c := range map[string]struct{ tries, client, want time.Duration }{
		"the rule":              {10 * time.Second, 0, 10 * time.Second},
		"the client":            {10 * time.Second, time.Second, time.Second},
		"the client, but later": {time.Second, time.Minute, time.Second},
		"the client alone":      {0, time.Minute, time.Minute},
		"neither":               {0, 0, 0},
	} {
		w := writing(t, "PUT", "/shop/_doc/1", with(func(r *rule.Rule) { r.Retry.MaxElapsed = c.tries }))
		if c.client > 0 {
			w.Deadline = w.Began.Add(c.client)
		}
		until, want := w.Asker().Until, w.Began.Add(c.want)
		if c.want == 0 {
			want = time.Time{}
		}
		if !until.Equal(want) {
			t.Errorf("%s: %v, want %v", name, until, want)
		}
	}
}
