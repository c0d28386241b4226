package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	lockengine "optimist/lockrouter/engine"
)

// proxies are real programs that are stopped and killed.
type proxies struct {
	t   *testing.T
	all []*optimist.Process
	rng *rand.Rand
}

func startProxies(t *testing.T, urls []string, index string) *proxies {
	p := &proxies{t: t, rng: rand.New(rand.NewPCG(1, 2))}
	for range 3 {
		p.all = append(p.all, optimist.Start(t, optimist.Options{Upstream: urls, Config: "locks: {index: " + index + "}\n"}))
	}
	return p
}

func (p *proxies) doors() (doors []door) {
	for _, one := range p.all {
		doors = append(doors, throughHTTP(one.URL))
	}
	return doors
}

// trouble stops a proxy for longer than most leases, or kills one and starts it again, in turn, until ctx ends.
func (p *proxies) trouble(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(200+p.rng.IntN(300)) * time.Millisecond):
		}
		one := p.all[p.rng.IntN(len(p.all))]
		if n%2 == 1 {
			one.Kill()
			if err := one.Start(p.t.Context()); err != nil {
				p.t.Error(err)
			}
			continue
		}
		if err := syscall.Kill(one.PID(), syscall.SIGSTOP); err != nil {
			p.t.Error(err)
		}
		<-time.After(600 * time.Millisecond)
		if err := syscall.Kill(one.PID(), syscall.SIGCONT); err != nil {
			p.t.Error(err)
		}
	}
}

// during has a crowd work, and trouble come, for that long. It begins once there is an index for locks.
func (r *recorder) during(t *testing.T, long time.Duration, unique string, trouble ...func(ctx context.Context)) {
	for n := 0; ; n++ {
		status, body, err := r.doors[0](t.Context(), "PUT", "/_lock/global/first?owner=first")
		if err == nil && status < 300 {
			break
		}
		if n == 10 { // an engine that is busy may take long to make an index
			t.Fatalf("%d %s %v", status, body, err)
		}
	}
	r.began = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var wg sync.WaitGroup
	for _, f := range trouble {
		wg.Go(func() { f(ctx) })
	}
	const workers = 9
	locks := append(somewhere(unique), hot(unique)...)
	if r.style == hasty {
		locks = hot(unique)
	}
	r.crowd(ctx, rand.Uint64(), workers, locks)
	wg.Wait()
}

func stoppedAndKilled(t *testing.T, e *engine.Engine, how style, long time.Duration) {
	p := startProxies(t, []string{e.URL}, e.Index(t))
	r := newRecorder(p.doors()...)
	r.style = how
	r.during(t, long, "f", p.trouble)
	if wrong := r.check(judge{timed: e.Kind.Scripts(), chains: e.Kind.Scripts()}); wrong != "" {
		t.Error(wrong)
	}
	r.enough(t, "acquire 201", "release 200")
}

func TestLocksAreSafeWhileProxiesAreStoppedAndKilled(t *testing.T) {
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES9}, func(t *testing.T, e *engine.Engine) {
		stoppedAndKilled(t, e, calm, 1500*time.Millisecond)
	})
}

func TestLocksAreSafeWhileProxiesAreStoppedAndKilledForLong(t *testing.T) {
	engine.Long(t)
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		t.Run("calm", func(t *testing.T) { stoppedAndKilled(t, e, calm, 40*time.Second) })
		t.Run("hasty", func(t *testing.T) { stoppedAndKilled(t, e, hasty, 40*time.Second) })
	})
}

// skewed has a crowd work through three proxies of this process whose clocks differ.
func skewed(t *testing.T, e *engine.Engine, scripts lockengine.Scripts, long time.Duration, ahead []int64) {
	index := e.Index(t)
	var doors []door
	for _, ms := range ahead {
		up, err := upstream.New(upstream.Config{URLs: []string{e.URL}, HealthInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(up.Close)
		p := lockrouter.New(lockrouter.Options{Store: lockengine.New(lockengine.Options{Upstream: up, Index: index, Scripts: scripts,
			Skew: time.Duration(ms) * time.Millisecond})})
		t.Cleanup(p.Close)
		doors = append(doors, into(p))
	}
	r := newRecorder(doors...)
	r.during(t, long, "s")
	if wrong := r.check(judge{timed: scripts == lockengine.Always, ahead: ahead}); wrong != "" {
		t.Error(wrong)
	}
	r.enough(t, "acquire 201", "release 200")
}

func eachWay(t *testing.T, test func(t *testing.T, e *engine.Engine, scripts lockengine.Scripts)) {
	t.Run("scripts", func(t *testing.T) {
		engine.Each(t, []engine.Kind{engine.OpenSearch38}, func(t *testing.T, e *engine.Engine) { test(t, e, lockengine.Always) })
	})
	t.Run("guarded", func(t *testing.T) {
		engine.Each(t, []engine.Kind{engine.ES9}, func(t *testing.T, e *engine.Engine) { test(t, e, lockengine.Never) })
	})
}

func TestLocksAreSafeWhileClocksDiffer(t *testing.T) {
	eachWay(t, func(t *testing.T, e *engine.Engine, scripts lockengine.Scripts) {
		skewed(t, e, scripts, 700*time.Millisecond, []int64{0, 400, -3_600_000})
	})
}

func TestLocksAreSafeWhileClocksDifferForLong(t *testing.T) {
	engine.Long(t)
	eachWay(t, func(t *testing.T, e *engine.Engine, scripts lockengine.Scripts) {
		for _, ahead := range [][]int64{{0, 200, -200}, {0, 600_000, -3_600_000}} {
			t.Run(fmt.Sprint(ahead), func(t *testing.T) { skewed(t, e, scripts, 20*time.Second, ahead) })
		}
	})
}

func TestLocksAreSafeWhilePrimariesDie(t *testing.T) {
	engine.Long(t)
	for _, k := range engine.All() {
		t.Run(k.String(), func(t *testing.T) { primariesDie(t, k) })
	}
}

func primariesDie(t *testing.T, k engine.Kind) {
	c, err := engine.StartCluster(t.Context(), k, 3, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	var urls []string
	for _, n := range c.Nodes {
		urls = append(urls, n.URL)
	}
	const index = "optimist-locks"
	p := startProxies(t, urls, index)
	client{t, p.all[0].URL}.do(201, "", "PUT", "/_lock/global/zeroth", `{"owner":"a"}`)
	if err := c.Await(t.Context(), 0, "green", 3); err != nil {
		t.Fatal(err)
	}
	r := newRecorder(p.doors()...)
	r.during(t, 45*time.Second, "c", p.trouble, func(ctx context.Context) {
		for asking := 0; ctx.Err() == nil; {
			<-time.After(5 * time.Second)
			victim, err := c.Primary(ctx, asking, index)
			if err != nil {
				t.Log(err)
				continue
			}
			c.Nodes[victim].Kill()
			asking = (victim + 1) % 3
			<-time.After(3 * time.Second)
			if err := c.Restart(t.Context(), victim); err != nil {
				t.Error(err)
				return
			}
			// The copy that comes back has to catch up before the next primary may die: there is one replica.
			if err := c.Await(t.Context(), asking, "green", 3); err != nil {
				t.Error(err)
			}
			t.Logf("the primary was killed, and came back, on node %d", victim)
		}
	})
	if wrong := r.check(judge{timed: k.Scripts(), chains: k.Scripts(), copies: true}); wrong != "" {
		t.Error(wrong)
	}
	r.enough(t, "acquire 201", "acquire unknown", "release 200")
}

// storage is what a lock protects: it refuses whoever comes with a token below the highest that it has seen.
type storage struct {
	mu      sync.Mutex
	highest int64
	wrote   chan int64
	refused chan string
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.URL.Path == "/over" {
		s.refused <- q.Get("renew") + " " + q.Get("release")
		return
	}
	fence, err := strconv.ParseInt(q.Get("fence"), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || fence < s.highest {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.highest = fence
	select {
	case s.wrote <- fence:
	default:
	}
}

// TestAHolderProcess isn't a test: it is the holder of the next one, in a process of its own.
func TestAHolderProcess(t *testing.T) {
	proxy, store := os.Getenv("HOLDER_PROXY"), os.Getenv("HOLDER_STORE")
	if proxy == "" {
		t.SkipNow()
	}
	c := client{t, proxy}
	const lock = "/_lock/global/fenced"
	got := c.do(201, "", "PUT", lock, `{"owner":"stopped","ttl":"400ms"}`)
	token := fmt.Sprintf("owner=stopped&token=%d", got.Token)
	for {
		res, err := http.Post(store+fmt.Sprintf("/write?fence=%d", got.Token), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusConflict {
			break
		}
		if r, err := c.try(t.Context(), "PUT", lock+"?renew&"+token, ""); err != nil || r.status != 200 {
			continue // it doesn't look at its lease: the token has to stop it
		}
	}
	renew, err1 := c.try(t.Context(), "PUT", lock+"?renew&"+token, "")
	release, err2 := c.try(t.Context(), "DELETE", lock+"?"+token, "")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	res, err := http.Post(store+fmt.Sprintf("/over?renew=%d&release=%d", renew.status, release.status), "", nil)
	if err == nil {
		_ = res.Body.Close()
	}
}

func TestAHolderThatWasStoppedIsRefusedByItsToken(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, _ *engine.Engine, c []client) {
		s := &storage{wrote: make(chan int64), refused: make(chan string, 1)}
		server := httptest.NewServer(s)
		defer server.Close()
		holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAHolderProcess$")
		holder.Env = append(os.Environ(), "HOLDER_PROXY="+c[0].url, "HOLDER_STORE="+server.URL)
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		old := <-s.wrote
		if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		next := c[1].do(201, "", "PUT", "/_lock/global/fenced", `{"owner":"next","wait":"10s"}`)
		if next.Token <= old {
			t.Errorf("token %d after %d", next.Token, old)
		}
		write := func() int {
			res, err := http.Post(fmt.Sprintf("%s/write?fence=%d", server.URL, next.Token), "", nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		if status := write(); status != 200 {
			t.Errorf("the new holder was answered %d", status)
		}
		if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if got := <-s.refused; got != "410 410" {
			t.Errorf("the old holder's renewal and release were answered %s", got)
		}
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
		if status := write(); status != 200 {
			t.Errorf("the new holder was answered %d", status)
		}
		c[0].release("/_lock/global/fenced", "next", next.Token)
	})
}
