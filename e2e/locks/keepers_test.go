package locks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
	"optimist/lockrouter"
	"optimist/lockrouter/conformance"
	"optimist/lockrouter/zookeeper"
)

// zooKeeper starts a server for the test.
func zooKeeper(t *testing.T) *engine.Server {
	t.Helper()
	z, err := engine.StartZooKeeper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Stop(); err != nil {
			t.Error(err)
		}
	})
	return z
}

// keeper is a proxy's, with a session that a slow machine doesn't lose.
func keeper(t *testing.T, o zookeeper.Options) *lockrouter.Router {
	t.Helper()
	if o.SessionTimeout == 0 {
		o.SessionTimeout = time.Minute
	}
	k, err := zookeeper.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := lockrouter.New(lockrouter.Options{Keeper: k, Ability: zookeeper.Ability(), Foreground: 20 * time.Second, Background: 20 * time.Second})
	t.Cleanup(func() { r.Close(); k.Close() })
	return r
}

func TestLocksInZooKeeper(t *testing.T) {
	z := zooKeeper(t)
	conformance.Run(t, "", func(t *testing.T) conformance.Store {
		s := conformance.Store{Name: "zookeeper", Queues: true, Repeats: true}
		for range 2 {
			s.Proxies = append(s.Proxies, keeper(t, zookeeper.Options{Servers: []string{z.Addr}}))
		}
		return s
	})
}

// zooConfig has a proxy keep its locks in ZooKeeper.
func zooConfig(addr, more string) string {
	return fmt.Sprintf("locks: {store: zookeeper, zookeeper: {servers: [%q]%s}}\n", addr, more)
}

// program is the real program with its locks in ZooKeeper, in front of a stub: no lock concerns the engine.
func program(t *testing.T, config string) *optimist.Process {
	t.Helper()
	return optimist.Start(t, optimist.Options{Config: config})
}

// TestAKilledProxyLosesItsLocksInZooKeeperAfterItsSession, and no earlier: the holder was promised so much.
func TestAKilledProxyLosesItsLocksInZooKeeperAfterItsSession(t *testing.T) {
	z := zooKeeper(t)
	const session = 1500 * time.Millisecond
	config := zooConfig(z.Addr, ", session_timeout: 1500ms")
	dying := program(t, config)
	alive := client{t, program(t, config).URL}
	const path = "/_lock/global/k"
	asked := time.Now()
	holder := client{t, dying.URL}.do(201, "", "PUT", path, `{"owner":"dead","ttl":"10m"}`)
	if promised := time.Duration(holder.In) * time.Millisecond; promised > session {
		t.Errorf("a lease of %s is promised, and a session lasts %s", promised, session)
	}
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_, _ = client{t, dying.URL}.try(context.Background(), "PUT", path, `{"owner":"waits","wait":"1m","ttl":"10m"}`)
	}()
	for !strings.Contains(alive.do(200, "", "GET", path, "").body, `"waiting":1`) {
	}
	dying.Kill() // with a holder, and with one who comes before all others
	<-waits
	next := alive.do(201, "", "PUT", path, `{"owner":"next","wait":"1m"}`)
	if time.Since(asked) < time.Duration(holder.In)*time.Millisecond {
		t.Error("the lock was given on before the lease that was promised had ended")
	}
	if next.Token <= holder.Token {
		t.Errorf("token %d after %d", next.Token, holder.Token)
	}
	alive.do(410, "lease_expired", "PUT", fmt.Sprintf("%s?renew&owner=dead&token=%d", path, holder.Token), "")
}

// TestARenewalMovesALockToAnotherSession: the lock outlives the proxy that has given it out.
func TestARenewalMovesALockToAnotherSession(t *testing.T) {
	engine.Long(t)
	z := zooKeeper(t)
	config := zooConfig(z.Addr, ", session_timeout: 1s")
	dying, alive := program(t, config), client{t, program(t, config).URL}
	const path = "/_lock/global/m"
	a := client{t, dying.URL}.do(201, "", "PUT", path, `{"owner":"a","ttl":"10m"}`)
	renew := fmt.Sprintf("%s?renew&owner=a&token=%d", path, a.Token)
	alive.do(200, "", "PUT", renew, "")
	dying.Kill()
	for began := time.Now(); time.Since(began) < 3*time.Second; { // the session of the dead is over long before
		if r := alive.do(200, "", "PUT", renew, ""); r.Token != a.Token {
			t.Fatalf("%+v", r)
		}
	}
	alive.release(path, "a", a.Token)
}

// TestAProxyThatEndsKeepsItsPromises: its leases in ZooKeeper last for as long as their holders were told.
func TestAProxyThatEndsKeepsItsPromises(t *testing.T) {
	engine.Long(t)
	z := zooKeeper(t)
	ends := keeper(t, zookeeper.Options{Servers: []string{z.Addr}, SessionTimeout: time.Minute})
	other := keeper(t, zookeeper.Options{Servers: []string{z.Addr}})
	serve(t, ends, 201, "PUT", "a", "owner=a&ttl=50s")
	free := keeper(t, zookeeper.Options{Servers: []string{z.Addr}})
	b := serve(t, free, 201, "PUT", "b", "owner=b&ttl=50s")
	serve(t, free, 200, "DELETE", "b", fmt.Sprint("owner=b&token=", b.Get("token").Int()))
	ends.Close()
	serve(t, other, 409, "PUT", "a", "owner=c&wait=0")
	serve(t, other, 201, "PUT", "b", "owner=c&wait=0")
}

// serve asks a Router for a global lock.
func serve(t *testing.T, r *lockrouter.Router, status int, method, name, query string) gjson.Result {
	t.Helper()
	a, err := r.Serve(context.Background(), &lockrouter.Request{Method: method, Path: []byte("/_lock/global/" + name), Query: []byte(query)})
	if err != nil || a.Status != status {
		t.Fatalf("%s %s?%s: %v %+v", method, name, query, err, a)
	}
	return gjson.ParseBytes(a.Body)
}

// TestAPartitionOfZooKeeperEndsLeases: who is cut off is told so, and the lock is another's when the session is over. What was asked
// meanwhile leaves nothing behind.
func TestAPartitionOfZooKeeperEndsLeases(t *testing.T) {
	engine.Long(t)
	z := zooKeeper(t)
	wire := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "zookeeper", "127.0.0.1:0", z.Addr)
	if err := wire.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Stop)
	cut := keeper(t, zookeeper.Options{Servers: []string{wire.Listen}, SessionTimeout: time.Second, Retries: 1, RetryDelay: 50 * time.Millisecond})
	alive := keeper(t, zookeeper.Options{Servers: []string{z.Addr}})
	for n, fault := range []string{
		`{"name":"f","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, // answers are lost
		`{"name":"f","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`,   // requests are lost
		`{"name":"f","type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`,
	} {
		name := fmt.Sprint("p", n)
		held := serve(t, cut, 201, "PUT", name, "owner=a&ttl=10m")
		if _, err := wire.Toxics.AddToxicJson(strings.NewReader(fault)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				serve(t, cut, 503, "PUT", name, fmt.Sprintf("owner=w%d&ttl=10m&wait=200ms", i))
			})
		}
		token := held.Get("token").Int()
		serve(t, cut, 503, "PUT", name, fmt.Sprintf("renew&owner=a&token=%d", token))
		next := serve(t, alive, 201, "PUT", name, "owner=b&wait=1m&ttl=1m")
		if next.Get("token").Int() <= token {
			t.Errorf("token %s after %d", next.Get("token"), token)
		}
		wg.Wait()
		wire.Toxics.ResetToxics(t.Context())
		// When the connection is back, the lease is over, and nobody is left in the queue.
		for {
			a, err := cut.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte("/_lock/global/" + name),
				Query: fmt.Appendf(nil, "renew&owner=a&token=%d", token)})
			if err != nil {
				t.Fatal(err)
			}
			if a.Status == 410 {
				break
			}
			if a.Status != 503 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
		for serve(t, alive, 200, "GET", name, "").Get("waiting").Int() != 0 {
		}
		serve(t, alive, 200, "DELETE", name, fmt.Sprint("owner=b&token=", next.Get("token").Int()))
		serve(t, cut, 201, "PUT", name, "owner=c&wait=20s")
	}
}

// TestZooKeeperMayComeLater, and go, and come back with what it had.
func TestZooKeeperMayComeLater(t *testing.T) {
	engine.Long(t)
	z := zooKeeper(t)
	z.Kill()
	r := keeper(t, zookeeper.Options{Servers: []string{z.Addr}, SessionTimeout: time.Minute, Retries: -1})
	serve(t, r, 503, "PUT", "a", "owner=a&wait=0")
	ready := func(name string) gjson.Result {
		for {
			a, err := r.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte("/_lock/global/" + name), Query: []byte("owner=a&ttl=50s")})
			if err != nil {
				t.Fatal(err)
			}
			if a.Status < 300 {
				return gjson.ParseBytes(a.Body)
			}
			if a.Status != 503 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
	}
	if err := z.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := ready("a")
	z.Kill()
	if err := z.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := ready("a"); again.Get("token").Int() != a.Get("token").Int() {
		t.Errorf("the session has outlived the server, and its lock has not: %s, then %s", a, again)
	}
}

// TestZooKeeperMayLoseWhatItHad: its zxids begin anew, and it doesn't answer a client that has seen higher ones. The proxy gives out locks
// again, and not before the leases that it had promised are over.
func TestZooKeeperMayLoseWhatItHad(t *testing.T) {
	z := zooKeeper(t)
	const session = time.Second
	r := keeper(t, zookeeper.Options{Servers: []string{z.Addr}, SessionTimeout: session, Retries: -1})
	began := time.Now()
	held := serve(t, r, 201, "PUT", "a", "owner=a&ttl=1m")
	z.Kill()
	if err := z.Lose(); err != nil {
		t.Fatal(err)
	}
	if err := z.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		a, err := r.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte("/_lock/global/a"), Query: []byte("owner=b&wait=0")})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 201 {
			break
		}
		if a.Status != 503 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("after a minute: %s", a.Body)
		}
	}
	if promised := time.Duration(held.Get("expires_in_ms").Int()) * time.Millisecond; time.Since(began) < promised {
		t.Errorf("another owner has the lock after %s, and %s were promised", time.Since(began), promised)
	}
	serve(t, r, 404, "PUT", "b", "renew&owner=a&token=1")
}

// TestSystem4ContentservOnZooKeeper has the same clients on ZooKeeper itself; and ZooKeeper go away.
func TestSystem4ContentservOnZooKeeper(t *testing.T) {
	z := zooKeeper(t)
	config := fmt.Sprintf("locks: {store: zookeeper, zookeeper: {servers: [%q], session_timeout: 1m, connection_retries: 0}, "+
		"wait: {foreground: 20s, background: 300ms}}\n", z.Addr)
	c := []client{{t, program(t, config).URL}, {t, program(t, config).URL}}
	contentserv(t, c)
	contentservNodes(t, z.Addr, "/optimist", "A", "B", c[0])
	named := program(t, zooConfig(z.Addr, ", session_timeout: 1m, root: /other, prefixes: {foreground: fg, background: nightly}"))
	contentservNodes(t, z.Addr, "/other", "fg", "nightly", client{t, named.URL})
	z.Kill()
	c[0].do(503, "lock_store_unavailable", "PUT", "/products/_lock/doc/4711", `{"owner":"editor-1","wait":"0"}`)
}

// contentservNodes wants the nodes of those who wait to have the prefixes of their classes.
func contentservNodes(t *testing.T, addr, root, foreground, background string, c client) {
	t.Helper()
	const path = "/products/_lock/doc/nodes"
	held := c.do(201, "", "PUT", path, `{"owner":"editor-1","ttl":"1m"}`)
	var wg sync.WaitGroup
	for i, class := range []string{"foreground", "background"} {
		wg.Go(func() {
			got := c.do(201, "", "PUT", path, fmt.Sprintf(`{"owner":%q,"priority":%[1]q,"wait":"1m"}`, class))
			c.release(path, class, got.Token)
		})
		for !strings.Contains(c.do(200, "", "GET", path, "").body, fmt.Sprintf(`"waiting":%d`, i+1)) {
		}
	}
	zoo, events, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer zoo.Close()
	go func() {
		for range events {
		}
	}()
	var classes []string
	locks, _, err := zoo.Children(root)
	for _, lock := range locks {
		nodes, _, failed := zoo.Children(root + "/" + lock)
		if failed != nil {
			t.Error(failed)
		}
		for _, node := range nodes {
			class, _, _ := strings.Cut(node, "-")
			classes = append(classes, class)
		}
	}
	if slices.Sort(classes); err != nil || strings.Join(slices.Compact(classes), " ") != foreground+" "+background {
		t.Errorf("%v: the nodes below %s begin with %q", err, root, classes)
	}
	c.release(path, "editor-1", held.Token)
	wg.Wait()
}

// TestSystem4ContentservDefaults: with nothing configured but the servers, everything is as long as the account says.
func TestSystem4ContentservDefaults(t *testing.T) {
	z := zooKeeper(t)
	p := program(t, zooConfig(z.Addr, ""))
	var c struct {
		Locks struct {
			ZooKeeper struct {
				SessionTimeout    string `json:"session_timeout"`
				ConnectionRetries int    `json:"connection_retries"`
				ConnectionDelay   string `json:"connection_delay"`
				Prefixes          struct{ Foreground, Background string }
			}
			Wait struct{ Foreground, Background string }
		}
	}
	a := enginetest.Ask(t, "GET", p.Admin+"/_optimist/config", "")
	if err := json.Unmarshal([]byte(a.Body), &c); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.Locks)
	if want := "{{5s 5 1s {A B}} {2s 2s}}"; got != want {
		t.Errorf("the defaults are %s; want %s", got, want)
	}
	const path = "/products/_lock/doc/4711"
	locks := client{t, p.URL}
	locks.do(201, "", "PUT", path, `{"owner":"editor-1","ttl":"1m"}`)
	for _, class := range []string{"foreground", "background"} {
		began := time.Now()
		locks.do(409, "lock_wait_timeout", "PUT", path, fmt.Sprintf(`{"owner":%q,"priority":%[1]q}`, class))
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("a request of the %s waited for %s", class, took)
		}
	}
}
