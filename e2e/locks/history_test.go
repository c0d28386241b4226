package locks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// door is how a client reaches a proxy: it gives the status and the body of the answer.
type door func(ctx context.Context, method, target string) (int, []byte, error)

// throughHTTP is the door of a real program.
func throughHTTP(url string) door {
	return func(ctx context.Context, method, target string) (int, []byte, error) {
		r, err := client{url: url}.try(ctx, method, target, "")
		return r.status, []byte(r.body), err
	}
}

// into is the door of a proxy in this process.
func into(r *lockrouter.Router) door {
	return func(ctx context.Context, method, target string) (int, []byte, error) {
		path, query, _ := strings.Cut(target, "?")
		a, err := r.Serve(ctx, &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query)})
		if err != nil {
			return 0, nil, err
		}
		return a.Status, a.Body, nil
	}
}

// style is how clients use locks.
type style struct {
	ttl  int64 // ms, about
	hold int64 // a lock is held for up to its ttl divided by this
	odds int   // out of these, one client each dies, is stopped, asks twice, is robbed; two renew. The others just release.
}

// Of the two styles, one has leases that often end, and the other locks that go from hand to hand: those that are promised have to be longer
// than the look by which a proxy learns that one of its own has its lock.
var (
	calm  = style{300, 2, 8}
	hasty = style{3000, 500, 60}
)

// recorder keeps what was asked and told.
type recorder struct {
	doors []door
	began time.Time
	style style

	mu      sync.Mutex
	history []porcupine.Operation
	lost    map[string]bool
	counts  map[string]int
}

func newRecorder(doors ...door) *recorder {
	return &recorder{doors: doors, began: time.Now(), style: calm, lost: map[string]bool{}, counts: map[string]int{}}
}

// answered is what the body of an answer may say.
type answered struct {
	Token   int64
	Owner   string
	Expires string `json:"expires_at"`
	In      int64  `json:"expires_in_ms"`
	Waited  int64  `json:"waited_ms"`
	Leases  []struct {
		Owner   string
		Expires string `json:"expires_at"`
	}
	Error struct {
		Type   string
		Holder struct {
			Owner   string
			Expires string `json:"expires_at"`
		}
	}
}

// ask makes a request and records it, unless it is one for a lock whose outcome nobody knows.
func (r *recorder) ask(ctx context.Context, method, query string, in asked) told {
	target := in.lock + in.path
	if query != "" {
		target += "?" + query
	}
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	in.wall, in.call = time.Now().UnixMilli(), int64(time.Since(r.began))
	status, body, err := r.doors[in.proxy](ctx, method, target)
	out := told{status: status, wall: time.Now().UnixMilli(), ret: int64(time.Since(r.began))}
	var said answered
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	switch {
	case err != nil || status == http.StatusServiceUnavailable || status >= 500:
		out.unknown, out.ret = true, math.MaxInt64
	case in.do == "look" && status == 200:
		if said.Owner != "" {
			out.holders = append(out.holders, holder{said.Owner, instant(said.Expires)})
		}
		for _, l := range said.Leases {
			out.holders = append(out.holders, holder{l.Owner, instant(l.Expires)})
		}
	case said.Error.Type == lockrouter.TypeHeld && said.Error.Holder.Owner != "":
		out.holders = append(out.holders, holder{said.Error.Holder.Owner, 0})
	case status == 200 || status == 201:
		out.token, out.until, out.waited = said.Token, instant(said.Expires), said.Waited
		out.at = out.until - said.In
		out.ends = in.call + (said.Waited+said.In)*int64(time.Millisecond)
	}
	r.record(&in, &out)
	return out
}

func (r *recorder) record(in *asked, out *told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	word := fmt.Sprint(in.do, " ", out.status)
	if out.unknown {
		word = in.do + " unknown"
	}
	r.counts[word]++
	if out.unknown && in.do == "acquire" {
		r.lost[in.owner] = true
	}
	if out.unknown && (in.do == "acquire" || in.do == "look") {
		return
	}
	r.history = append(r.history, porcupine.Operation{Input: in, Output: out, Call: in.call, Return: out.ret})
}

func instant(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// check holds what was recorded against the specification.
func (r *recorder) check(j judge) string {
	j.lost = r.lost
	// What became of a request without an answer shows, at the latest, when somebody else has got the lock: the end of the model's doubt.
	for i := range r.history {
		o := &r.history[i]
		in := o.Input.(*asked)
		if o.Return != math.MaxInt64 {
			continue
		}
		for k := range r.history {
			n, got := r.history[k].Input.(*asked), r.history[k].Output.(*told)
			if n.do == "acquire" && got.status == 201 && n.lock == in.lock && got.token > in.token &&
				exclude(n.path, n.mode, in.path, in.mode) {
				o.Return = min(o.Return, max(r.history[k].Return, o.Call))
			}
		}
	}
	return j.check(r.history)
}

// worker is a client that takes locks again and again, and does with them what clients do, and what they shouldn't.
type worker struct {
	*recorder
	rng   *rand.Rand
	name  string
	n     int
	locks []asked      // that it chooses from
	ttl   func() int64 // ms
}

const doc = "/_lock/global/"

// somewhere are the locks that clients meet at: two names, and a tree whose locks lie above and beside each other.
func somewhere(unique string) []asked {
	locks := []asked{{lock: doc + unique + "-1", mode: state.Exclusive}, {lock: doc + unique + "-2", mode: state.Exclusive}}
	for _, path := range []string{"/", "/a/", "/a/b/", "/a/c/", "/d/"} {
		for _, mode := range []state.Mode{state.Exclusive, state.Shared} {
			locks = append(locks, asked{lock: "/" + unique + "/_lock/tree", path: path, mode: mode})
		}
	}
	return locks
}

// hot is one lock that everybody wants, and that goes from hand to hand.
func hot(unique string) []asked { return []asked{{lock: doc + unique + "-hot", mode: state.Exclusive}} }

// pause is what a client does with a lock, or without.
func (w *worker) pause(ms int64) {
	<-time.After(time.Duration(w.rng.Int64N(max(ms, 1))) * time.Millisecond)
}

func (w *worker) elsewhere(in asked) asked {
	in.proxy = w.rng.IntN(len(w.doors))
	return in
}

// round takes one lock.
func (w *worker) round(ctx context.Context) {
	w.n++
	in := w.elsewhere(w.locks[w.rng.IntN(len(w.locks))])
	in.do, in.owner, in.ttl, in.try = "acquire", fmt.Sprintf("%s-%d", w.name, w.n), w.ttl(), w.rng.IntN(4) == 0
	wait := 500 + w.rng.IntN(3000)
	if in.try {
		wait = 0
	}
	query := fmt.Sprintf("owner=%s&ttl=%dms&wait=%dms&mode=%s", in.owner, in.ttl, wait, in.mode)
	if w.rng.IntN(4) == 0 {
		query += "&priority=background"
	}
	got := w.ask(ctx, "PUT", query, in)
	if got.status != 201 {
		return
	}
	in.token = got.token
	w.pause(in.ttl / w.style.hold)
	switch w.rng.IntN(w.style.odds) {
	case 0: // it dies
		return
	case 1, 2:
		w.renew(ctx, w.elsewhere(in))
		w.pause(in.ttl / w.style.hold)
	case 3: // it is stopped, and comes back after its lease
		<-time.After(time.Duration(in.ttl*3/2) * time.Millisecond)
		w.renew(ctx, w.elsewhere(in))
	case 4: // it asks again
		w.ask(ctx, "PUT", query, w.elsewhere(in))
	case 5: // somebody takes it for its own
		other := w.elsewhere(in)
		other.owner += "-thief"
		w.release(ctx, other)
		w.renew(ctx, other)
	}
	w.release(ctx, w.elsewhere(in))
	if w.rng.IntN(8) == 0 {
		w.release(ctx, w.elsewhere(in))
		w.renew(ctx, w.elsewhere(in))
	}
}

func (w *worker) renew(ctx context.Context, in asked) {
	in.do = "renew"
	w.ask(ctx, "PUT", fmt.Sprintf("renew&owner=%s&token=%d", in.owner, in.token), in)
}

func (w *worker) release(ctx context.Context, in asked) {
	in.do = "release"
	w.ask(ctx, "DELETE", fmt.Sprintf("owner=%s&token=%d", in.owner, in.token), in)
}

// crowd has workers work until ctx ends, and somebody look on.
func (r *recorder) crowd(ctx context.Context, seed uint64, workers int, locks []asked) {
	ttl := r.style.ttl
	var wg sync.WaitGroup
	for i := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		w := &worker{recorder: r, rng: rng, name: fmt.Sprint("w", i), locks: locks, ttl: func() int64 { return ttl/2 + rng.Int64N(ttl) }}
		wg.Go(func() {
			for ctx.Err() == nil {
				w.round(context.WithoutCancel(ctx))
			}
		})
	}
	wg.Go(func() {
		w := &worker{recorder: r, rng: rand.New(rand.NewPCG(seed, math.MaxUint64))}
		for ctx.Err() == nil {
			in := w.elsewhere(locks[w.rng.IntN(len(locks))])
			in.do = "look"
			w.ask(context.WithoutCancel(ctx), "GET", "", in)
			w.pause(40)
		}
	})
	wg.Wait()
}

// add adds the history of another recorder, which has ended.
func (r *recorder) add(o *recorder) {
	r.history = append(r.history, o.history...)
	for word, n := range o.counts {
		r.counts[word] += n
	}
}

// enough fails the test unless the history has something of what it is about.
func (r *recorder) enough(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if r.counts[word] == 0 {
			t.Errorf("nothing was recorded that is %q: %v", word, r.counts)
		}
	}
	t.Logf("%d requests in the history: %v", len(r.history), r.counts)
}
