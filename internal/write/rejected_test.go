package write

import (
	"context"
	"errors"
	"testing"

	"optimist/internal/api"
	"optimist/internal/delivery"
	"optimist/internal/upstream"
)

// An engine that has too much to do says so with 429, and has applied nothing.
func TestARejectedWriteWaitsAndGoesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		rules           string
		rejections      int
		status, written int
		outcome         string
	}{
		"by default":            {"", 3, 200, 4, "guarded"},
		"if the rule forbids":   {"rules:\n- {name: r, match: {index: [shop]}, rejected: pass}\n", 1, 429, 1, "guarded"},
		"not for ever":          {"rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 3}}\n", 1000, 429, 3, "guarded"},
		"within its rule's own": {"rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 1}}\n", 1, 429, 1, "guarded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"a":1}`)
			me := w.client("me")
			me.read("1")
			written := 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" {
					return nil, nil
				}
				if written++; written <= c.rejections {
					return answering(429, tooManyRequests), nil
				}
				return nil, nil
			}
			has(t, me.save("1", `{"a":2}`), c.status, c.outcome)
			if written != c.written {
				t.Errorf("sent %d times, want %d", written, c.written)
			}
			want := `{"a":1}`
			if c.status == 200 {
				want = `{"a":2}`
			}
			same(t, w.stored("1"), want)
		})
	}
}

// The client leaves while its write waits: it isn't sent any more.
func TestARejectedWriteOfAClientThatLeftIsNotSentAgain(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	sent := 0
	ctx, leave := context.WithCancel(context.Background())
	w.engine.before = func(*upstream.Request) (*upstream.Response, error) {
		sent++
		leave()
		return answering(429, tooManyRequests), nil
	}
	s := single{delivery.Sender{Up: w.engine}}
	c := ruled(w.rules.Match("shop", api.Index))
	res, err := s.send(ctx, c, &upstream.Request{Method: "PUT"})
	if err != nil || res.Status != 429 || sent != 1 {
		t.Errorf("sent %d times: %v, %v", sent, res, err)
	}
}

// A later try's answer that is lost leaves the outcome open, whatever the ones before it were answered with.
func TestARejectedWriteWhoseNextAnswerIsLostIsUnknown(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/a: sum}}}\n")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	tries := 0
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" && tries == 2 {
			return lostError
		}
		return nil
	}
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" {
			if tries++; tries == 1 {
				return answering(429, tooManyRequests), nil
			}
		}
		return nil, nil
	}
	if r := me.save("1", `{"a":2}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Errorf("got %v", r)
	}
	same(t, w.stored("1"), `{"a":2}`)
}
