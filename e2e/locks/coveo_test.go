package locks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	goclient "optimist/client"
	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// TestSystem5Coveo is best-effort locks on resources in memcached, in front of guarded writes to each real engine.
func TestSystem5Coveo(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		server := memcached(t)
		config := fmt.Sprintf("locks: {store: memcached, memcached: {servers: [%q], timeout: 20s}}\n", server)
		var c []client
		for range 2 {
			c = append(c, client{t, optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: config}).URL})
		}
		coveo(t, e, c, true)
		coveoWithoutLocks(t, e, c, server)
	})
}

// TestSystem5CoveoOnTheEngine has the same clients on the engine alone.
func TestSystem5CoveoOnTheEngine(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, e *engine.Engine, c []client) { coveo(t, e, c, false) })
}

// coveo is what the system's account promises, whatever the locks are in.
func coveo(t *testing.T, e *engine.Engine, c []client, bestEffort bool) {
	const mine, theirs = "host1-thread7-1700000000", "host2-thread1-1700000001"
	resource := func(owner, more string) string {
		return fmt.Sprintf(`{"owner":%q,"resource":["acme","source","7"]%s}`, owner, more)
	}
	held := c[0].do(201, "", "PUT", "/_lock/global", resource(mine, `,"ttl":"1m"`))
	if strings.Contains(held.body, `"store":"memcached","best_effort":true`) != bestEffort {
		t.Error(held.body)
	}
	// Another list isn't the same resource.
	other := c[1].do(201, "", "PUT", "/_lock/global", `{"owner":"x","resource":["acme","source/7"],"wait":"0"}`)
	c[1].release(other.Lock, "x", other.Token)
	// A number of tries, then a failure to the caller.
	began := time.Now()
	c[1].do(409, "lock_wait_timeout", "PUT", "/_lock/global", resource(theirs, `,"delay":"10ms","max_retry":3`))
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("3 tries more, 10 ms apart, took %s", took)
	}
	c[1].do(409, "lock_held", "PUT", "/_lock/global", resource(theirs, `,"max_retry":0`))
	// Only the one who has it releases it.
	c[1].do(403, "not_the_owner", "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", held.Lock, theirs, held.Token), "")
	got := make(chan reply, 1)
	go func() {
		r, _ := c[1].try(context.Background(), "PUT", "/_lock/global", resource(theirs, `,"delay":"10ms","max_retry":6000,"ttl":"1ms"`))
		got <- r
	}()
	c[0].release(held.Lock, mine, held.Token)
	if r := <-got; r.status != 201 || r.Token <= held.Token {
		t.Errorf("%+v", r)
	}
	// Everything expires: nobody releases this one.
	again := c[0].do(201, "", "PUT", "/_lock/global", resource(mine, `,"wait":"1m","ttl":"1m"`))
	// Reads and writes don't ask for locks; the guard keeps the truth.
	path := "/" + e.Index(t) + "/_doc/1"
	c[1].do(201, "", "PUT", path, `{"n":1}`)
	c[1].do(200, "", "GET", path, "")
	c[1].do(409, "version_conflict_engine_exception", "PUT", path+"?if_seq_no=7&if_primary_term=1", `{"n":2}`)
	c[0].release(again.Lock, mine, again.Token)
	coveoHook(t, c)
}

// coveoHook has a program do something between two tries: it stops trying when the work isn't needed any more.
func coveoHook(t *testing.T, c []client) {
	t.Helper()
	lock, enough := goclient.Global("acme source 7"), errors.New("not needed any more")
	err := goclient.New(c[0].url, goclient.Options{}).DoInLock(t.Context(), lock, goclient.LockOptions{TTL: time.Minute}, func(ctx context.Context) error {
		tries := 0
		err := goclient.New(c[1].url, goclient.Options{}).DoInLock(ctx, lock, goclient.LockOptions{Retries: 100, Delay: time.Millisecond,
			Between: func(context.Context, int) error {
				if tries++; tries == 3 {
					return enough
				}
				return nil
			}}, func(context.Context) error { return errors.New("two have the lock") })
		if !errors.Is(err, enough) || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// coveoWithoutLocks has memcached forget a lock. Two clients take themselves for its holder, and change the same document: the guarded
// writes keep both changes.
func coveoWithoutLocks(t *testing.T, e *engine.Engine, c []client, server string) {
	t.Helper()
	path := "/" + e.Index(t) + "/_doc/1"
	const resource = `{"owner":%q,"resource":["acme","source","8"],"ttl":"1m","wait":"0"}`
	enginetest.Ask(t, "PUT", e.URL+path, `{"a":0,"b":0}`)
	c[0].do(201, "", "PUT", "/_lock/global", fmt.Sprintf(resource, "one"))
	forget(t, server)
	c[1].do(201, "", "PUT", "/_lock/global", fmt.Sprintf(resource, "two"))
	for i := range c {
		if a := enginetest.Ask(t, "GET", c[i].url+path, "", "Optimist-Session", fmt.Sprint(i)); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	for i, body := range []string{`{"a":1,"b":0}`, `{"a":0,"b":1}`} {
		if a := enginetest.Ask(t, "PUT", c[i].url+path, body, "Optimist-Session", fmt.Sprint(i)); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if a := enginetest.Ask(t, "GET", e.URL+path, ""); gjson.Get(a.Body, "_source.a").Int() != 1 || gjson.Get(a.Body, "_source.b").Int() != 1 {
		t.Errorf("a change is lost: %s", a.Body)
	}
}

// memcached starts memcached itself, and gives its address.
func memcached(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	cmd := exec.Command("memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "16", "-u", "nobody", "-M")
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; install it with: apt-get install -y memcached", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
	}
}

// forget has memcached forget everything, as it forgets what it evicts.
func forget(t *testing.T, server string) {
	t.Helper()
	c, err := net.Dial("tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	answer := make([]byte, 4)
	if _, err = c.Write([]byte("flush_all\r\n")); err == nil {
		_, err = c.Read(answer)
	}
	if err != nil || string(answer[:2]) != "OK" {
		t.Fatalf("%v %s", err, answer)
	}
}
