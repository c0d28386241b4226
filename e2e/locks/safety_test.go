package locks_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// answers are those that every history should have.
var answers = []string{"acquire 201", "acquire 409", "acquire 200", "renew 200", "renew 410", "release 200", "release 403", "release 410", "look 200"}

func TestHistoriesOfTheModelsOwnStoreHaveAnOrder(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r, _ := inMemory(t, memory.New(nil), seed, somewhere("m"), calm)
			if wrong := r.check(judge{timed: true, chains: true}); wrong != "" {
				t.Errorf("seed %d: %s", seed, wrong)
			}
			r.enough(t, answers...)
		})
	}
}

// TestHistoriesOfChainsHaveAnOrder is of locks that go from hand to hand within a proxy before the document says so.
func TestHistoriesOfChainsHaveAnOrder(t *testing.T) {
	all := newRecorder() // few clients of one history renew
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r, chains := inMemory(t, memory.New(nil), seed, hot("m"), hasty)
			if wrong := r.check(judge{timed: true, chains: true}); wrong != "" {
				t.Errorf("seed %d: %s", seed, wrong)
			}
			all.add(r)
			if chains == 0 {
				t.Error("there was no chain")
			}
			t.Logf("%d calls left a chain", chains)
		})
	}
	all.enough(t, "acquire 201", "release 200", "renew 200")
}

// inMemory records half a minute of three proxies on a store, and how many calls left leases that were promised.
func inMemory(t *testing.T, s lockrouter.Store, seed uint64, locks []asked, how style) (r *recorder, chains int64) {
	var doors []door
	slow := &slow{Store: s, took: time.Millisecond}
	for range 3 {
		p := lockrouter.New(lockrouter.Options{Store: slow, Chain: 15})
		defer p.Close()
		doors = append(doors, into(p))
	}
	r = newRecorder(doors...)
	r.style = how
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r.crowd(ctx, seed, 8, locks)
	return r, slow.chains.Load()
}

// slow is a store whose calls take time, so that requests meet.
type slow struct {
	lockrouter.Store
	took   time.Duration
	chains atomic.Int64 // calls that left leases that were promised
}

func (s *slow) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	<-time.After(s.took)
	done := s.Store.Do(ctx, changes)
	<-time.After(s.took)
	for _, d := range done {
		if d.Doc != nil && len(d.Doc.Chain) > 0 {
			s.chains.Add(1)
		}
	}
	return done
}

// flawed is the model's store with a mistake that it makes now and then, before it carries a call out.
type flawed struct {
	lockrouter.Store
	mistake func(d *state.Doc, now *int64)

	mu   sync.Mutex
	n    int
	docs map[string]*state.Doc
}

func (s *flawed) Do(_ context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make([]lockrouter.Changed, len(changes))
	for i, c := range changes {
		d, now := new(state.Doc), time.Now().UnixMilli()
		if old := s.docs[c.ID]; old != nil {
			d = old.Clone()
		}
		if s.n++; s.n%20 == 0 {
			s.mistake(d, &now)
		}
		said, _ := d.Apply(c.Call, state.Clock{Now: now})
		s.docs[c.ID] = d
		done[i] = lockrouter.Changed{Doc: d.Clone(), Results: said}
	}
	return done
}

func (s *flawed) Read(_ context.Context, ids []string) ([]*state.Doc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs := make([]*state.Doc, len(ids))
	for i, id := range ids {
		if d := s.docs[id]; d != nil {
			docs[i] = d.Clone()
		}
	}
	return docs, nil
}

// TestARenewalMayEndEarlierThanTheLease is of a proxy that gave 12 ms more, because it didn't know the time to the ms, and of one that
// renewed the lease 12 ms later, and knew it. Who looks is told the new end, and never the old one plus something.
func TestARenewalMayEndEarlierThanTheLease(t *testing.T) {
	const lock, owner = doc + "renewed", "a"
	r := newRecorder()
	step := func(do string, status int, at, until int64) {
		in := &asked{do: do, lock: lock, owner: owner, mode: state.Exclusive, token: 7, call: int64(len(r.history)) * 10}
		out := &told{status: status, token: 7, at: at, until: until, ret: in.call + 5}
		if do == "look" {
			out.holders = []holder{{owner, until}}
		}
		r.record(in, out)
	}
	step("acquire", 201, 455, 719)
	step("renew", 200, 443, 707)
	step("look", 200, 0, 707)
	if wrong := r.check(judge{timed: true}); wrong != "" {
		t.Error(wrong)
	}
	step("look", 200, 0, 720)
	if r.check(judge{timed: true}) == "" {
		t.Error("an end that nobody gave was taken for right")
	}
}

// TestTheModelFindsMistakes shows that the histories' check can fail: each of these stores is wrong in a way of its own.
func TestTheModelFindsMistakes(t *testing.T) {
	for name, mistake := range map[string]func(d *state.Doc, now *int64){
		"leases aren't looked at":     func(d *state.Doc, _ *int64) { d.Holds = nil },
		"tokens begin anew":           func(d *state.Doc, now *int64) { d.Last, d.Seen, *now = 0, 0, *now-3_600_000 },
		"a lease ends before its end": func(d *state.Doc, now *int64) { move(d, *now) },
		"a lapsed lease is revived": func(d *state.Doc, now *int64) {
			if len(d.Holds) > 0 && d.Holds[0].Until <= *now {
				move(d, *now+1000)
			}
		},
		"who reads keeps no writer out": func(d *state.Doc, _ *int64) {
			d.Holds = slices.DeleteFunc(d.Holds, func(h state.Hold) bool { return h.Mode == state.Shared })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrong := ""
				for range 5 { // a history may happen to have no moment in which the mistake matters
					flawed := &flawed{Store: memory.New(nil), mistake: mistake, docs: map[string]*state.Doc{}}
					r, _ := inMemory(t, flawed, 1, somewhere("m"), calm)
					if wrong = r.check(judge{timed: true, chains: true}); wrong != "" {
						break
					}
				}
				if wrong == "" {
					t.Error("nothing was found")
				}
				t.Logf("%.400s", wrong)
			})
		})
	}
}

func move(d *state.Doc, until int64) {
	for i := range d.Holds {
		d.Holds[i].Until = until
	}
}
