package lockrouter_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/wire"
	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

func TestAHandOverIsOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		first := take(t, r, "first")
		const waiters = 20
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for i := range waiters {
			owner := fmt.Sprintf("w%02d", i)
			wg.Go(func() {
				got := take(t, r, owner)
				mu.Lock()
				order = append(order, owner)
				mu.Unlock()
				give(t, r, owner, got.token)
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Millisecond)
		before := s.count()
		give(t, r, "first", first.token)
		wg.Wait()
		if n := s.count() - before; n > waiters+1 {
			t.Errorf("%d calls for %d hand-overs", n, waiters+1)
		}
		for i, owner := range order {
			if owner != fmt.Sprintf("w%02d", i) {
				t.Fatalf("not in the order in which they came: %v", order)
			}
		}
		if n := r.Waiting(state.Foreground); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

func TestAWaiterThatLeavesIsPassed(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		first := take(t, r, "first")
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		done := make(chan error, 1)
		go func() {
			_, err := request(ctx, r, "PUT", global, `{"owner":"leaves"}`)
			done <- err
		}()
		synctest.Wait()
		got := make(chan reply, 1)
		go func() { got <- take(t, r, "stays") }()
		synctest.Wait()
		leave(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Fatal(err)
		}
		give(t, r, "first", first.token)
		if g := <-got; g.waited > 10 {
			t.Errorf("waited for %d ms", g.waited)
		}
	})
}

func TestAGrantWhoseClientLeftIsReleasedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		s.took = 50 * time.Millisecond
		r := router(t, s, lockrouter.Options{})
		for name, body := range map[string]string{"waiting": `{"owner":"a","wait":"1s"}`, "trying": `{"owner":"a","wait":"0"}`} {
			ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond) // while the call is out
			if _, err := request(ctx, r, "PUT", global, body); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(name, err)
			}
			leave()
			began := time.Now()
			b := take(t, r, "b")
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Errorf("%s: the next one waited for %v", name, took)
			}
			give(t, r, "b", b.token)
		}
	})
}

func TestAWaitEndsAndLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{Foreground: 2 * time.Second, Background: 3 * time.Second})
		first := take(t, r, "first")
		for class, wait := range map[string]time.Duration{"foreground": 2 * time.Second, "background": 3 * time.Second} {
			began := time.Now()
			got := ask(t, r, 409, lockrouter.TypeTimeout, "PUT", global, `{"owner":"late","priority":"`+class+`"}`)
			if took := time.Since(began); took != wait {
				t.Errorf("%s waited for %v", class, took)
			}
			if got.retry == "" || !strings.Contains(got.body, `"owner":"first"`) || strings.Contains(got.body, fmt.Sprint(first.token)) {
				t.Errorf("%s: %+v", class, got)
			}
		}
		time.Sleep(time.Second)
		docs, err := s.Read(t.Context(), []string{"global:a"})
		if err != nil || len(docs[0].Queue) != 0 {
			t.Errorf("%+v %v", docs[0], err)
		}
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", global, `{"owner":"late","wait":"0"}`)
	})
}

func TestAnotherProxyHandsOverWithinATick(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		const tick = 250 * time.Millisecond
		for range 5 {
			first := take(t, here, "first")
			got := make(chan time.Time, 1)
			go func() {
				b := ask(t, there, 201, "", "PUT", global, `{"owner":"b","wait":"1m"}`)
				got <- time.Now()
				give(t, there, "b", b.token)
			}()
			time.Sleep(5 * time.Second)
			began := time.Now()
			give(t, here, "first", first.token)
			if took := (<-got).Sub(began); took > tick+10*time.Millisecond {
				t.Errorf("took %v", took)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestADeadHoldersLockIsTakenOverAfterItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		dead := ask(t, here, 201, "", "PUT", global, `{"owner":"dead","ttl":"5s"}`)
		time.Sleep(time.Second)
		began := time.Now()
		b := ask(t, there, 201, "", "PUT", global, `{"owner":"b","wait":"1m","ttl":"5s"}`)
		if took := time.Since(began); took < 3900*time.Millisecond || took > 4260*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if b.token <= dead.token || b.in != 5000 {
			t.Errorf("%+v after %+v", b, dead)
		}
		late := fmt.Sprintf("%s?renew&owner=dead&token=%d", global, dead.token)
		ask(t, here, 410, lockrouter.TypeExpired, "PUT", late, "")
		ask(t, here, 410, lockrouter.TypeExpired, "DELETE", late, "")
		ask(t, here, 403, lockrouter.TypeNotOwner, "DELETE", fmt.Sprintf("%s?owner=dead&token=%d", global, b.token), "")
		ask(t, here, 410, lockrouter.TypeExpired, "DELETE", global+"?owner=dead&token=9007199254740000", "") // it tells nobody which are larger
		ask(t, here, 404, lockrouter.TypeMissing, "DELETE", "/_lock/global/other?owner=dead&token=1", "")
		give(t, there, "b", b.token)
		give(t, here, "b", b.token) // the last release, repeated
	})
}

func TestAProxyThatDiedBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		alive := router(t, s, lockrouter.Options{})
		dead := lockrouter.New(lockrouter.Options{Store: s, Foreground: 2 * time.Second})
		first := take(t, alive, "first")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = request(t.Context(), dead, "PUT", global, `{"owner":"d","wait":"10m"}`)
		}()
		time.Sleep(100 * time.Millisecond)
		s.failing(func(c *state.Call) (error, error) { // nothing of it gets through any more
			if len(c.Ops) == 1 && c.Ops[0].Do == state.Leave {
				return lockrouter.ErrStore, nil
			}
			return nil, nil
		})
		dead.Close()
		<-done
		got := make(chan reply, 1)
		go func() { got <- ask(t, alive, 201, "", "PUT", global, `{"owner":"b","wait":"1m"}`) }()
		time.Sleep(time.Second)
		began := time.Now()
		give(t, alive, "first", first.token)
		<-got
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestForegroundGoesFirstWithinAProxyAndAcross(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		first := take(t, here, "first")
		order := make(chan string, 4)
		var wg sync.WaitGroup
		for i, w := range []struct {
			r        *lockrouter.Router
			priority string
		}{{here, "background"}, {there, "background"}, {there, "foreground"}, {here, "foreground"}} {
			owner := fmt.Sprint(w.priority, i)
			wg.Go(func() {
				got := ask(t, w.r, 201, "", "PUT", global, `{"owner":"`+owner+`","wait":"1m","priority":"`+w.priority+`"}`)
				order <- owner
				give(t, w.r, owner, got.token)
			})
			time.Sleep(300 * time.Millisecond)
		}
		give(t, here, "first", first.token)
		wg.Wait()
		close(order)
		var got []string
		for o := range order {
			got = append(got, o)
		}
		if want := "foreground2 foreground3 background0 background1"; strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	})
}

func TestAStoreThatIsAwayIsSaidAndWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		first := take(t, r, "first")
		s.failing(func(*state.Call) (error, error) { return lockrouter.ErrStore, nil })
		ask(t, r, 503, lockrouter.TypeStore, "DELETE", fmt.Sprintf("%s?owner=first&token=%d", global, first.token), "")
		ask(t, r, 503, lockrouter.TypeStore, "PUT", global, `{"owner":"b"}`)
		ask(t, r, 503, lockrouter.TypeStore, "PUT", global, `{"owner":"b","wait":"0"}`)
		got := make(chan reply, 1)
		go func() { got <- ask(t, r, 201, "", "PUT", global, `{"owner":"c","wait":"1m"}`) }()
		time.Sleep(10 * time.Second)
		s.failing(nil)
		give(t, r, "first", first.token)
		give(t, r, "c", (<-got).token)
	})
}

func TestWhatALostAnswerLeftInDoubtIsFoundOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		lose := func(n int) {
			s.failing(func(*state.Call) (error, error) {
				if n--; n >= 0 {
					return nil, fmt.Errorf("%w: answer lost", lockrouter.ErrStore)
				}
				return nil, nil
			})
		}
		lose(1)
		a := take(t, r, "a") // it has the lock by the first call, and is told by the second
		lose(1)
		ask(t, r, 200, "", "PUT", fmt.Sprintf("%s?renew&owner=a&token=%d", global, a.token), "")
		lose(1)
		give(t, r, "a", a.token)
		// Whoever was told that the store is away doesn't keep a lock that it doesn't know of.
		lose(1 << 30)
		ask(t, r, 503, lockrouter.TypeStore, "PUT", global, `{"owner":"b","wait":"100ms"}`)
		ask(t, r, 503, lockrouter.TypeStore, "PUT", global, `{"owner":"b","wait":"0"}`)
		lose(0)
		time.Sleep(5 * time.Second)
		began := time.Now()
		take(t, r, "c")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestContendersAreServedEqually(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		routers := []*lockrouter.Router{router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})}
		const contenders = 16
		var counts [contenders]int
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		var inside sync.Mutex
		for i := range contenders {
			owner := fmt.Sprint("c", i)
			wg.Go(func() {
				for ctx.Err() == nil {
					got := ask(t, routers[i%2], 201, "", "PUT", global, `{"owner":"`+owner+`","wait":"10m"}`)
					if !inside.TryLock() {
						t.Error("two at once")
					} else {
						inside.Unlock()
					}
					counts[i]++
					give(t, routers[i%2], owner, got.token)
				}
			})
		}
		wg.Wait()
		least, most := counts[0], counts[0]
		for _, n := range counts {
			least, most = min(least, n), max(most, n)
		}
		if float64(most-least) > 0.05*float64(most+least) { // ±5 % of the middle
			t.Errorf("%v", counts)
		}
		t.Logf("%v in a minute of calls of 1 ms; %d calls, %d looks", counts, s.calls, s.looks)
	})
}

func TestRequestsThatCantBeReadSaySo(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for target, body := range map[string]string{
			global:                          `{"ownr":"a"}`,
			global + "?":                    `{"owner":"a"} x`,
			"/_lock/global/b":               `{}`,
			"/_lock/global/c":               `{"owner":"a","ttl":"1.5s"}`,
			"/_lock/global/d":               `{"owner":"a","ttl":"2d"}`,
			"/_lock/global/e":               `{"owner":"a","wait":5}`,
			"/_lock/global/f":               `{"owner":"a","priority":"middle"}`,
			"/_lock/global/g":               `{"owner":"a","mode":"shared"}`,
			"/_lock/global/h?renw":          `{"owner":"a"}`,
			"/_lock/nothing":                `{"owner":"a"}`,
			"/shop/_lock/doc":               `{"owner":"a"}`,
			"/shop,b/_lock/doc/1":           `{"owner":"a"}`,
			"/shop/_lock/tree/a/../b":       `{"owner":"a"}`,
			"/shop/_lock/tree/%zz":          `{"owner":"a"}`,
			"/_lock/global/a?renew&owner=a": ``, // without a token
		} {
			got, err := request(t.Context(), r, "PUT", target, body)
			if err != nil || got.status != 400 && got.status != 404 || got.typ == "" || got.reason == "" {
				t.Errorf("%s %s: %+v %v", target, body, got, err)
			}
		}
		for _, c := range []struct{ method, target, allow string }{
			{"POST", global, "GET, PUT, DELETE"},
			{"HEAD", global, "GET, PUT, DELETE"},
			{"PUT", "/_lock", "GET"},
			{"DELETE", "/_lock/_release", "POST"},
			{"GET", docs, "POST, PUT, DELETE"},
		} {
			if got := ask(t, r, 405, lockrouter.TypeBad, c.method, c.target, ""); got.allow != c.allow || !strings.HasSuffix(got.reason, c.method) {
				t.Errorf("%s %s: %+v", c.method, c.target, got)
			}
		}
		ask(t, r, 400, lockrouter.TypeBad, "PUT", docs, `{"owner":"a","ids":["1"]}`) // without renew
		if s.calls > 1 {
			t.Errorf("%d calls", s.calls)
		}
	})
}

// A parameter that can't be read isn't left out: the lease would be as long as the default, and its holder counts on another time.
func TestMalformedEscapesInAQueryAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for _, c := range []struct{ method, target, body string }{
			{"PUT", global + "?ttl=%zz", `{"owner":"a"}`},
			{"PUT", global + "?%zz=1", `{"owner":"a"}`},
			{"PUT", global + "?owner=a&ttl=1%", ``},
			{"DELETE", global + "?owner=a&token=%4", ``},
			{"GET", "/_lock?owner=%zz", ``},
			{"POST", docs + "?ttl=%zz", `{"owner":"a","ids":["1"]}`},
		} {
			got := ask(t, r, 400, lockrouter.TypeBad, c.method, c.target, c.body)
			if !strings.Contains(got.reason, " escape sequence ") {
				t.Errorf("%s %s: %+v", c.method, c.target, got)
			}
		}
		if s.calls > 0 {
			t.Errorf("%d calls", s.calls)
		}
	})
}

// A switch that isn't understood isn't on: what its holder writes would be undone.
func TestASwitchIsTrueOrFalse(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for _, name := range []string{"undo", "renew"} {
			for _, value := range []string{"no", "0", "1", "False", "TRUE", "maybe"} {
				got := ask(t, r, 400, lockrouter.TypeBad, "PUT", global+"?owner=a&"+name+"="+value, "")
				if want := name + " is true or false, not [" + value + "]"; !strings.Contains(got.reason, want) {
					t.Errorf("%s=%s: %+v", name, value, got)
				}
			}
			_ = ask(t, r, 201, "", "PUT", global+name+"?owner=a&"+name+"=false", "")
		}
		if got := ask(t, r, 400, lockrouter.TypeBad, "PUT", global+"?owner=a&undo", ""); !strings.Contains(got.reason, "undo.auth") {
			t.Errorf("undo: %+v", got) // it is on
		}
		for body, want := range map[string]string{`{"owner":"a","undo":"true"}`: "undo: want true or false; there is a string",
			`{"owner":"a","ttl":30}`: "ttl: want a string; there is a number", `{"ownr":"a"}`: `did you mean "owner"?`} {
			for _, target := range []string{global, docs} {
				method := map[bool]string{true: "PUT", false: "POST"}[target == global]
				if got := ask(t, r, 400, "parse_exception", method, target, body); !strings.Contains(got.reason, want) {
					t.Errorf("%s %s: %+v", target, body, got)
				}
			}
		}
	})
}

func TestTakesOnlyItsOwnPaths(t *testing.T) {
	r := router(t, &shelf{}, lockrouter.Options{})
	for path, want := range map[string]bool{
		"/_lock": true, "/_lock/global": true, "/_lock/": true, "/shop/_lock/doc/1": true, "/shop/_lock": true, "/_locks": false,
		"/shop/_doc/1": false, "/": false, "": false, "/shop": false, "/_search": false, "/a/b/_lock": false, "/shop/_locked": false,
		"//_lock": false, "/_doc/_lock": false,
	} {
		if got := r.Takes([]byte(path)); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestLocksOfATreeExcludeEachOtherAlongTheirPaths(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		const tree = "/fs/_lock/tree"
		file := ask(t, r, 201, "", "PUT", tree+"/clinton/projects/README.txt", `{"owner":"a","wait":"0"}`)
		ask(t, r, 201, "", "PUT", tree+"/clinton/projects/other.txt", `{"owner":"b","wait":"0"}`)
		got := ask(t, r, 409, lockrouter.TypeHeld, "PUT", tree+"/clinton", `{"owner":"c","wait":"0"}`)
		if !strings.Contains(got.body, tree+"/clinton/projects/README.txt") {
			t.Errorf("which lock is in the way isn't said: %s", got.body)
		}
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", tree+"/%2Fclinton%2Fprojects", `{"owner":"c","wait":"0"}`)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", tree+"/clinton/", `{"owner":"c","wait":"0","mode":"shared"}`)
		ask(t, r, 201, "", "PUT", tree+"/clintonville", `{"owner":"c","wait":"0"}`)
		if file.lock != tree+"/clinton/projects/README.txt" {
			t.Error(file.lock)
		}
		list := ask(t, r, 200, "", "GET", "/_lock?prefix="+tree+"/clinton/", "")
		if strings.Count(list.body, `"owner"`) != 2 {
			t.Error(list.body)
		}
		look := ask(t, r, 200, "", "GET", tree+"/clinton", "")
		if strings.Count(look.body, `"owner"`) != 2 || strings.Contains(look.body, "token") {
			t.Error(look.body)
		}
		all := ask(t, r, 200, "", "POST", "/_lock/_release", fmt.Sprintf(`{"owner":"a","tokens":[%d]}`, file.token))
		if !strings.Contains(all.body, `"released":1`) {
			t.Error(all.body)
		}
		ask(t, r, 400, lockrouter.TypeBad, "POST", "/_lock/_release", `{"owner":"a"}`)
	})
}

func TestThousandsWaitOnOneProxy(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		first := take(t, r, "first")
		const waiters = 10_000
		var wg sync.WaitGroup
		for i := range waiters {
			owner := fmt.Sprint("w", i)
			wg.Go(func() {
				got := ask(t, r, 201, "", "PUT", global, `{"owner":"`+owner+`","wait":"1h"}`)
				give(t, r, owner, got.token)
			})
		}
		synctest.Wait()
		if n := r.Waiting(state.Foreground); n != waiters {
			t.Errorf("%d wait", n)
		}
		before := s.count()
		give(t, r, "first", first.token)
		wg.Wait()
		if n := s.count() - before; n > waiters+1 {
			t.Errorf("%d calls", n)
		}
	})
}

// A client closes its connection while it waits, and nobody has noticed yet when it is its turn: the next one has the lock at once.
func TestAGrantToAClosedConnectionIsReleasedAtOnce(t *testing.T) {
	for name, serve := range map[string]func(ctx context.Context, r *lockrouter.Router) error{
		"one": func(ctx context.Context, r *lockrouter.Router) error {
			_, err := request(ctx, r, "PUT", global, `{"owner":"left","wait":"1m","ttl":"1h"}`)
			return err
		},
		"one that tries": func(ctx context.Context, r *lockrouter.Router) error {
			_, err := request(ctx, r, "PUT", "/_lock/global/tried", `{"owner":"left","wait":"0","ttl":"1h"}`)
			return err
		},
		"several": func(ctx context.Context, r *lockrouter.Router) error {
			_, err := request(ctx, r, "POST", "/shop/_lock/docs", `{"owner":"left","ids":["1","2"],"ttl":"1h"}`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := router(t, &shelf{Store: memory.New(nil)}, lockrouter.Options{})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			served, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer served.Close()
			ctx := wire.WithPeer(t.Context(), served)
			_ = client.Close()
			for !wire.PeerClosed(ctx) {
				runtime.Gosched()
			}
			if err := serve(ctx, r); !errors.Is(err, context.Canceled) {
				t.Errorf("it got %v", err)
			}
			for path, body := range map[string]string{"/_lock/global/a": `{"owner":"b"}`, "/_lock/global/tried": `{"owner":"b"}`,
				"/shop/_lock/doc/1": `{"owner":"b"}`, "/shop/_lock/doc/2": `{"owner":"b"}`} {
				ask(t, r, 201, "", "PUT", path, body)
			}
		})
	}
}

// Others wait for a lock, at its holder's proxy and at another. The holder asks again: for example, it didn't get the first answer.
func TestAHolderReentersBeforeThoseWhoWait(t *testing.T) {
	for name, lock := range map[string]string{"name": global, "tree": "/fs/_lock/tree/a"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *shelf) {
				here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
				first := ask(t, here, 201, "", "PUT", lock, `{"owner":"a","ttl":"1m"}`)
				for i := range 6 {
					waits(t, []*lockrouter.Router{here, there}[i%2], lock, fmt.Sprintf(`{"owner":"w%d","wait":"20s"}`, i))
				}
				for _, r := range []*lockrouter.Router{here, there, here} {
					reenters(t, r, lock, `{"owner":"a","ttl":"1m","wait":"5s"}`, first.token)
				}
			})
		})
	}
}

// The holder asks again through another proxy, which doesn't know yet that it has the lock.
func TestAHolderReentersAtAProxyThatDoesntKnowItYet(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		before := take(t, here, "b")
		for i := range 2 {
			waits(t, there, global, fmt.Sprintf(`{"owner":"w%d","wait":"10s","priority":"background"}`, i))
		}
		pass(3 * time.Second)
		give(t, here, "b", before.token)
		first := ask(t, here, 201, "", "PUT", global, `{"owner":"a","ttl":"1m","wait":"1s"}`)
		reenters(t, there, global, `{"owner":"a","ttl":"1m","wait":"1s","priority":"background"}`, first.token)
	})
}

// waits has a request wait until the test ends.
func waits(t *testing.T, r *lockrouter.Router, lock, body string) {
	go func() { _, _ = request(t.Context(), r, "PUT", lock, body) }()
	pass(100 * time.Millisecond)
}

// reenters has a holder ask again.
func reenters(t *testing.T, r *lockrouter.Router, lock, body string, token int64) {
	t.Helper()
	if again := ask(t, r, 200, "", "PUT", lock, body); again.token != token || again.waited > 300 {
		t.Errorf("token %d after %d ms, had %d", again.token, again.waited, token)
	}
}
