// Package conformance tests what all stores of locks have in common. A store declares what it can't do; then it has to refuse
// that clearly.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/lockrouter"
)

// Store is one that is to be tested.
type Store struct {
	// Proxies are two Routers on the same store, at least. They wait for 20s at most, by their own choice.
	Proxies []*lockrouter.Router
	// Name and BestEffort are what answers say of the store; empty and false: nothing.
	Name       string
	BestEffort bool
	// Queues says that clients get a lock in their order, and the foreground before the background.
	Queues bool
	// Documents says that there are trees, lists, and locks of several documents.
	Documents bool
	// Repeats says that the last release may be repeated.
	Repeats bool
}

// Reply is an answer, read.
type Reply struct {
	Status     int
	Body       string
	Lock       string
	Owner      string
	Token      int64
	ExpiresIn  int64  `json:"expires_in_ms"`
	Waited     *int64 `json:"waited_ms"`
	Waiting    int64
	Note       string
	Store      string
	BestEffort bool `json:"best_effort"`
	Error      struct {
		Type, Reason, Store string
		Holder              struct {
			Owner, Note string
			Token       int64
		}
	}
}

// suite is one run.
type suite struct {
	Store
	t *testing.T
}

// Run tests a store, with locks whose names begin with prefix, which nobody else uses.
func Run(t *testing.T, prefix string, open func(t *testing.T) Store) {
	for name, test := range map[string]func(s *suite, lock string){
		"one holder": oneHolder, "re-entry": reentry, "refusals": refusals, "tokens grow": tokensGrow, "waits": waits,
		"a lease ends": leaseEnds, "many at once": many, "a client that leaves": leaves, "resources": resources, "tries": tries,
		"classes": classes, "what there isn't": unable, "the operator": operator,
	} {
		t.Run(name, func(t *testing.T) {
			test(&suite{open(t), t}, "/_lock/global/"+prefix+strings.ReplaceAll(name, " ", "-"))
		})
	}
}

func (s *suite) ask(ctx context.Context, proxy int, method, target, body string) (Reply, error) {
	path, query, _ := strings.Cut(target, "?")
	method, admin := strings.CutPrefix(method, "admin ")
	a, err := s.Proxies[proxy].Serve(ctx, &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query), Body: []byte(body),
		Admin: admin})
	if err != nil {
		return Reply{}, err
	}
	r := Reply{Status: a.Status, Body: string(a.Body)}
	return r, json.Unmarshal(a.Body, &r)
}

// do makes a request that has to be answered with a status, and a type if that is an error: "201", "409 lock_held".
func (s *suite) do(proxy int, want, method, target, body string) Reply {
	s.t.Helper()
	r, err := s.ask(s.t.Context(), proxy, method, target, body)
	if err != nil {
		s.t.Fatalf("%s %s %s: %v", method, target, body, err)
	}
	if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Error.Type)); got != want {
		s.t.Fatalf("%s %s %s: %s, want %s: %s", method, target, body, got, want, r.Body)
	}
	if r.Status < 300 && (r.Store != s.Name || r.BestEffort != s.BestEffort) {
		s.t.Errorf("%s %s says nothing, or something else, of the store: %s", method, target, r.Body)
	}
	return r
}

// token is the query by which an owner renews or releases its lease.
func token(owner string, token int64) string { return fmt.Sprintf("owner=%s&token=%d", owner, token) }

func (s *suite) release(proxy int, lock, owner string, held int64) {
	s.t.Helper()
	s.do(proxy, "200", "DELETE", lock+"?"+token(owner, held), "")
}

func oneHolder(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s","note":"nightly"}`)
	if a.Lock != lock || a.Owner != "a" || a.Token <= 0 || a.Token >= 1<<53 || a.ExpiresIn <= 20_000 || a.ExpiresIn > 30_000 ||
		a.Note != "nightly" || a.Waited == nil {
		s.t.Errorf("%s", a.Body)
	}
	held := s.do(1, "409 lock_held", "PUT", lock, `{"owner":"b","wait":"0"}`)
	if held.Error.Holder.Owner != "a" || held.Error.Holder.Note != "nightly" || held.Error.Holder.Token != 0 {
		s.t.Errorf("%s", held.Body)
	}
	look := s.do(1, "200", "GET", lock, "")
	if look.Owner != "a" || look.Note != "nightly" || look.Token != 0 || look.Lock != lock {
		s.t.Errorf("%s", look.Body)
	}
	more := s.do(1, "200", "PUT", lock+"?renew&"+token("a", a.Token), `{"ttl":"20s"}`)
	if more.ExpiresIn <= 0 || more.ExpiresIn > 20_000 || more.Token != a.Token {
		s.t.Errorf("%s", more.Body)
	}
	s.release(1, lock, "a", a.Token)
	s.do(0, "404 lock_not_found", "GET", lock, "")
	if s.Repeats {
		s.release(0, lock, "a", a.Token)
	}
}

func reentry(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"20s"}`)
	again := s.do(1, "200", "PUT", lock, `{"process_id":"a","ttl":"30s"}`)
	if again.Token != a.Token || again.ExpiresIn < 25_000 {
		s.t.Errorf("%s", again.Body)
	}
	shorter := s.do(0, "200", "PUT", lock, `{"owner":"a","ttl":"1s"}`)
	if shorter.Token != a.Token || shorter.ExpiresIn < 25_000 {
		s.t.Errorf("a second request makes the lease shorter that the first one relies on: %s", shorter.Body)
	}
	s.release(0, lock, "a", a.Token)
	s.do(1, "201", "PUT", lock, `{"owner":"b","wait":"0"}`)
}

func refusals(s *suite, lock string) {
	s.do(0, "404 lock_not_found", "DELETE", lock+"-none?owner=a", "")
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	s.do(1, "403 not_the_owner", "DELETE", lock+"?"+token("b", a.Token), "")
	s.do(1, "403 not_the_owner", "DELETE", lock+"?owner=b", "")
	s.do(1, "403 not_the_owner", "PUT", lock+"?renew&"+token("b", a.Token), "")
	s.do(1, "400 illegal_argument_exception", "DELETE", lock+"?owner=a", "")
	s.do(1, "410 lease_expired", "DELETE", lock+"?"+token("a", a.Token-1), "")
	s.release(1, lock, "a", a.Token)
	s.do(0, "410 lease_expired", "PUT", lock+"?renew&"+token("a", a.Token), "")
	s.do(0, "400 illegal_argument_exception", "PUT", lock, `{}`)
	s.do(0, "400 parse_exception", "PUT", lock, `{"owner":"a","tll":"1s"}`)
}

func tokensGrow(s *suite, lock string) {
	last := int64(0)
	for i := range 20 {
		owner := fmt.Sprint("o", i)
		r := s.do(i%2, "201", "PUT", lock, `{"owner":"`+owner+`"}`)
		if r.Token <= last {
			s.t.Errorf("token %d after %d", r.Token, last)
		}
		last = r.Token
		s.release((i+1)%2, lock, owner, r.Token)
	}
}

func waits(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	s.do(1, "409 lock_wait_timeout", "PUT", lock, `{"owner":"b","wait":"20ms"}`)
	got := make(chan Reply, 1)
	asked := time.Now()
	go func() {
		r, _ := s.ask(s.t.Context(), 1, "PUT", lock, `{"owner":"b","wait":"20s"}`)
		got <- r
	}()
	s.waiting(1, 1)
	<-time.After(100 * time.Millisecond) // of which the answer tells a part: the lease begins with it
	s.release(0, lock, "a", a.Token)
	if r := <-got; r.Status != 201 || r.Token <= a.Token || r.Waited == nil || *r.Waited <= 0 || *r.Waited > time.Since(asked).Milliseconds() {
		s.t.Errorf("%+v", r)
	}
	s.waiting(1, 0)
}

// waiting waits until as many requests wait at a proxy.
func (s *suite) waiting(proxy, n int) {
	s.t.Helper()
	for s.Proxies[proxy].Waiting("foreground")+s.Proxies[proxy].Waiting("background") != n {
		if s.t.Context().Err() != nil {
			s.t.Fatal("the test has ended")
		}
		<-time.After(time.Millisecond)
	}
}

func leaseEnds(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"50ms"}`)
	b := s.do(1, "201", "PUT", lock, `{"owner":"b","wait":"20s"}`)
	if b.Token <= a.Token {
		s.t.Errorf("token %d after %d", b.Token, a.Token)
	}
	s.do(0, "410 lease_expired", "PUT", lock+"?renew&"+token("a", a.Token), "")
	s.do(0, "410 lease_expired", "DELETE", lock+"?"+token("a", a.Token), "")
	s.release(1, lock, "b", b.Token)
}

func many(s *suite, lock string) {
	var inside sync.Mutex
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 5 {
				owner := fmt.Sprintf("o%d-%d", i, n)
				r, err := s.ask(s.t.Context(), i%2, "PUT", lock, `{"owner":"`+owner+`","wait":"1m"}`)
				if err != nil || r.Status != 201 {
					s.t.Errorf("%v %+v", err, r)
					return
				}
				if !inside.TryLock() {
					s.t.Error("two have the lock")
				} else {
					inside.Unlock()
				}
				if r, err := s.ask(s.t.Context(), i%2, "DELETE", lock+"?"+token(owner, r.Token), ""); err != nil || r.Status != 200 {
					s.t.Errorf("%v %+v", err, r)
				}
			}
		})
	}
	wg.Wait()
}

func leaves(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	ctx, leave := context.WithCancel(s.t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.ask(ctx, 1, "PUT", lock, `{"owner":"b","wait":"20s","ttl":"10m"}`)
		gone <- err
	}()
	s.waiting(1, 1)
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		s.t.Error(err)
	}
	s.waiting(1, 0)
	s.release(0, lock, "a", a.Token)
	s.do(0, "201", "PUT", lock, `{"owner":"c","wait":"20s"}`)
}

func resources(s *suite, lock string) {
	name := strings.TrimPrefix(lock, "/_lock/global/")
	a := s.do(0, "201", "PUT", "/_lock/global", fmt.Sprintf(`{"owner":"a","resource":[%q,"x/y","z"],"ttl":"30s"}`, name))
	s.do(1, "409 lock_held", "PUT", "/_lock/global?resource="+name+"&resource=x%2Fy&resource=z", `{"owner":"b","wait":"0"}`)
	s.do(1, "409 lock_held", "PUT", a.Lock, `{"owner":"b","wait":"0"}`)
	b := s.do(1, "201", "PUT", "/_lock/global", fmt.Sprintf(`{"owner":"b","resource":[%q,"x","y","z"],"wait":"0"}`, name))
	if a.Lock == b.Lock {
		s.t.Errorf("two resources are one lock: %s", a.Lock)
	}
	s.do(0, "400 illegal_argument_exception", "PUT", lock, `{"owner":"a","resource":["x"]}`)
	s.do(1, "200", "DELETE", fmt.Sprintf("/_lock/global?resource=%s&resource=x%%2Fy&resource=z&owner=a&token=%d", name, a.Token), "")
	s.release(0, b.Lock, "b", b.Token)
}

func tries(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	s.do(1, "409 lock_held", "PUT", lock, `{"owner":"b","max_retry":0}`)
	s.do(1, "409 lock_wait_timeout", "PUT", lock, `{"owner":"b","max_retry":2,"delay":"5ms"}`)
	s.do(1, "400 illegal_argument_exception", "PUT", lock, `{"owner":"b","max_retry":-1}`)
	got := make(chan Reply, 1)
	go func() {
		r, _ := s.ask(s.t.Context(), 1, "PUT", lock, `{"owner":"b","max_retry":2000,"delay":"10ms"}`)
		got <- r
	}()
	s.waiting(1, 1)
	s.release(0, lock, "a", a.Token)
	if r := <-got; r.Status != 201 {
		s.t.Errorf("%+v", r)
	}
}

// classes: whoever of the background waits first, comes after the foreground.
func classes(s *suite, lock string) {
	if !s.Queues {
		s.t.Skip("the store has no queue")
	}
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	order := make(chan string, 4)
	var wg sync.WaitGroup
	// Those of one class are at one proxy: stores may order clients of several proxies by clocks.
	for i, w := range []struct {
		owner, class string
		proxy        int
	}{{"b1", "background", 0}, {"f1", "foreground", 1}, {"f2", "foreground", 1}, {"b2", "background", 0}} {
		wg.Go(func() {
			body := fmt.Sprintf(`{"owner":%q,"priority":%q,"wait":"30s","ttl":"30s"}`, w.owner, w.class)
			r, err := s.ask(s.t.Context(), w.proxy, "PUT", lock, body)
			if err != nil || r.Status != 201 {
				s.t.Errorf("%v %+v", err, r)
				return
			}
			order <- w.owner
			s.release(w.proxy, lock, w.owner, r.Token)
		})
		for !s.queued(lock, i+1) {
			s.do(0, "200", "PUT", lock+"?renew&"+token("a", a.Token), "")
		}
	}
	s.release(0, lock, "a", a.Token)
	wg.Wait()
	close(order)
	var got []string
	for o := range order {
		got = append(got, o)
	}
	if strings.Join(got, " ") != "f1 f2 b1 b2" {
		s.t.Errorf("in the order %v", got)
	}
}

// queued reports whether n requests of the classes test have their places. A lock document counts those behind the first of a proxy's class
// only now and then; their order is the proxy's own.
func (s *suite) queued(lock string, n int) bool {
	least := n
	if s.Documents {
		waiting := 0
		for _, r := range s.Proxies {
			waiting += r.Waiting("foreground") + r.Waiting("background")
		}
		if waiting != n {
			return false
		}
		least = min(n, len(s.Proxies))
	}
	return s.do(0, "200", "GET", lock, "").Waiting >= int64(least)
}

func unable(s *suite, lock string) {
	if s.Documents {
		s.t.Skip("the store can do all of it")
	}
	name := strings.TrimPrefix(lock, "/_lock/global/")
	for _, q := range [][3]string{
		{"PUT", "/i/_lock/tree/" + name, `{"owner":"a"}`}, {"POST", "/i/_lock/docs", `{"owner":"a","ids":["1"]}`}, {"GET", "/_lock", ""},
		{"POST", "/_lock/_release", `{"owner":"a","tokens":[1]}`},
	} {
		r := s.do(0, "400 lock_not_supported", q[0], q[1], q[2])
		if r.Error.Store != s.Name || !strings.Contains(r.Error.Reason, s.Name) {
			s.t.Errorf("%s", r.Body)
		}
	}
}

func operator(s *suite, lock string) {
	a := s.do(0, "201", "PUT", lock, `{"owner":"a","ttl":"30s"}`)
	r, err := s.ask(s.t.Context(), 1, "admin DELETE", lock, "")
	if err != nil || r.Status != 200 || !strings.Contains(r.Body, fmt.Sprintf(`"token":%d`, a.Token)) {
		s.t.Errorf("%v %+v", err, r)
	}
	s.do(0, "404 lock_not_found", "GET", lock, "")
}
