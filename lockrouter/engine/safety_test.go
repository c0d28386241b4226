package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
)

// ledger holds what clients may believe against each other: who counts on which lease until when, by the true time.
type ledger struct {
	t *testing.T

	mu     sync.Mutex
	ends   map[string]time.Time // by owner
	last   int64
	grants int
	lapses int
}

func (l *ledger) got(owner string, token int64, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.grants++
	if !until.After(now) {
		return // it was told too late to count on it
	}
	for other, end := range l.ends {
		if other != owner && end.After(now) {
			l.t.Errorf("%s has the lock, and %s counts on it for another %v", owner, other, end.Sub(now))
		}
	}
	if token <= l.last {
		l.t.Errorf("token %d after %d", token, l.last)
	}
	l.last, l.ends[owner] = token, until
}

func (l *ledger) until(owner string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[owner] = end
}

// member is a client that takes a lock again and again, and now and then forgets it, or stays for too long.
type member struct {
	*ledger
	r     *lockrouter.Router
	owner string
	rng   *rand.Rand
	long  int // 1: some leases are ten times as long
}

func (m *member) ask(method, query string) (status int, token int64, waited time.Duration) {
	a, err := m.r.Serve(m.t.Context(), &lockrouter.Request{Method: method, Path: []byte("/_lock/global/a"), Query: []byte("owner=" + m.owner + query)})
	if err != nil {
		m.t.Error(err)
		return 0, 0, 0
	}
	var b struct {
		Token  int64
		Waited int64 `json:"waited_ms"`
	}
	if err := json.Unmarshal(a.Body, &b); err != nil {
		m.t.Error(err)
	}
	return a.Status, b.Token, time.Duration(b.Waited) * time.Millisecond
}

func (m *member) round() {
	ttl := time.Duration(50+m.rng.IntN(400)) * time.Millisecond * time.Duration(1+9*m.rng.IntN(2)*m.long)
	sent := time.Now()
	status, token, waited := m.ask("PUT", fmt.Sprintf("&wait=1m&ttl=%dms", ttl.Milliseconds()))
	if status != 201 {
		m.t.Errorf("%s: %d", m.owner, status)
		return
	}
	end := sent.Add(waited + ttl)
	m.got(m.owner, token, end)
	time.Sleep(time.Duration(m.rng.Int64N(int64(ttl))))
	switch m.rng.IntN(4) {
	case 0: // it dies
		m.mu.Lock()
		m.lapses++
		m.mu.Unlock()
		return
	case 1:
		sent = time.Now()
		if status, _, _ := m.ask("PUT", fmt.Sprintf("&renew&token=%d", token)); status == 200 {
			m.until(m.owner, sent.Add(ttl))
			time.Sleep(time.Duration(m.rng.Int64N(int64(ttl))))
		}
	case 2: // it comes back after its lease
		time.Sleep(2 * ttl)
	}
	m.until(m.owner, time.Now()) // from here on it doesn't count on it
	if status, _, _ := m.ask("DELETE", fmt.Sprintf("&token=%d", token)); status != 200 && status != 410 {
		m.t.Errorf("%s: a release was answered %d", m.owner, status)
	}
}

func TestProxiesWithoutACommonClockNeverGiveALockTwice(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { crowd(t, seed) }) })
	}
}

func crowd(t *testing.T, seed uint64) {
	n := newNode()
	l := &ledger{t: t, ends: map[string]time.Time{}}
	var routers []*lockrouter.Router
	for _, skew := range []time.Duration{0, 10 * time.Minute, -time.Hour} {
		r := lockrouter.New(lockrouter.Options{Store: New(Options{Upstream: n, Index: "locks", Skew: skew})})
		defer r.Close()
		routers = append(routers, r)
	}
	l.play(routers, seed, 0)
	t.Logf("%d grants, %d of them never released", l.grants, l.lapses)
}

// play has members of the proxies take the lock again and again, and sees to it that all are served.
func (l *ledger) play(routers []*lockrouter.Router, seed uint64, long int) {
	const members, rounds = 9, 20
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for round := range rounds {
				(&member{l, routers[i%len(routers)], fmt.Sprint("m", i, "-", round), rng, long}).round()
			}
		})
	}
	wg.Wait()
	if l.grants != members*rounds {
		l.t.Errorf("%d of %d were served", l.grants, members*rounds)
	}
}
