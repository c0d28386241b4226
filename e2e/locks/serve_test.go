package locks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// client is a program that takes locks through a proxy.
type client struct {
	t   testing.TB
	url string
}

// reply is an answer, with what it says of a lock.
type reply struct {
	status int
	header http.Header
	body   string

	Lock   string
	Owner  string
	Token  int64
	In     int64 `json:"expires_in_ms"`
	Waited int64 `json:"waited_ms"`
	Note   string

	Waiting int // requests, for the lock
	Error   struct {
		Type   string
		Reason string
		Holder struct{ Owner, Note string }
		Queue  struct{ Place int }
	}
}

func (c client) try(ctx context.Context, method, path, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: res.StatusCode, header: res.Header, body: string(b)}
	return r, json.Unmarshal(b, &r)
}

// do makes a request that has to be answered with the status, and the type if that is an error.
func (c client) do(status int, typ, method, path, body string) reply {
	c.t.Helper()
	r, err := c.try(context.Background(), method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.status != status || r.Error.Type != typ {
		c.t.Fatalf("%s %s %s: %d %s, want %d %s: %s", method, path, body, r.status, r.Error.Type, status, typ, r.body)
	}
	return r
}

func (c client) release(path, owner string, token int64) {
	c.t.Helper()
	c.do(200, "", "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", path, owner, token), "")
}

// eachEngine runs the test against as many proxies as are asked for, on one lock index of each engine.
func eachEngine(t *testing.T, proxies int, config string, test func(t *testing.T, e *engine.Engine, c []client)) {
	t.Helper()
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		var clients []client
		for range proxies {
			p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "locks: {index: " + index + config + "}\n"})
			clients = append(clients, client{t, p.URL})
		}
		test(t, e, clients)
	})
}

func TestALockThroughTheRealProgram(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, e *engine.Engine, c []client) {
		here, there := c[0], c[1]
		a := here.do(201, "", "PUT", "/_lock/global/job", `{"owner":"a","ttl":"20s","note":"nightly"}`)
		if a.Lock != "/_lock/global/job" || a.Owner != "a" || a.Token == 0 || a.In != 20_000 || a.Note != "nightly" {
			t.Errorf("%+v", a)
		}
		if product := a.header.Get("X-Elastic-Product"); (product != "") != (e.Kind == engine.ES9) {
			t.Errorf("product %q", product)
		}
		if again := there.do(200, "", "PUT", "/_lock/global/job", `{"process_id":"a","ttl":"30s"}`); again.Token != a.Token {
			t.Errorf("%+v", again)
		}
		held := there.do(409, "lock_held", "PUT", "/_lock/global/job", `{"owner":"b","wait":"0"}`)
		if held.Error.Holder.Owner != "a" || held.Error.Holder.Note != "nightly" || held.Error.Queue.Place != 1 || held.header.Get("Retry-After") == "" {
			t.Errorf("%+v", held)
		}
		if strings.Contains(held.body, fmt.Sprint(a.Token)) {
			t.Error("the token of somebody else's lease is told")
		}
		there.do(409, "lock_wait_timeout", "PUT", "/_lock/global/job", `{"owner":"b","wait":"50ms"}`)
		there.do(403, "not_the_owner", "DELETE", fmt.Sprintf("/_lock/global/job?owner=b&token=%d", a.Token), "")
		there.do(200, "", "PUT", fmt.Sprintf("/_lock/global/job?renew&owner=a&token=%d", a.Token), `{"ttl":"60s"}`)
		if look := there.do(200, "", "GET", "/_lock/global/job", ""); look.Owner != "a" || look.Token != 0 || look.In < 50_000 {
			t.Errorf("%+v", look)
		}
		if list := there.do(200, "", "GET", "/_lock?owner=a&prefix=/_lock/global", ""); !strings.Contains(list.body, `"lock":"/_lock/global/job"`) {
			t.Error(list.body)
		}
		there.release("/_lock/global/job", "a", a.Token)
		here.release("/_lock/global/job", "a", a.Token)
		here.do(404, "lock_not_found", "GET", "/_lock/global/job", "")
		b := here.do(201, "", "PUT", "/_lock/global/job", `{"owner":"b"}`)
		if b.Token <= a.Token {
			t.Errorf("token %d after %d", b.Token, a.Token)
		}
		here.do(410, "lease_expired", "PUT", fmt.Sprintf("/_lock/global/job?renew&owner=a&token=%d", a.Token), "")
		here.do(400, "illegal_argument_exception", "DELETE", "/_lock/global/job?owner=b", "")

		doc := here.do(201, "", "PUT", "/shop/_lock/doc/a%2Fb%20%C3%BC", `{"owner":"a"}`)
		if doc.Lock != "/shop/_lock/doc/a%2Fb%20%C3%BC" {
			t.Error(doc.Lock)
		}
		there.do(409, "lock_held", "PUT", doc.Lock, `{"owner":"b","wait":"0"}`)
		tree := here.do(201, "", "PUT", "/fs/_lock/tree/clinton/projects", `{"owner":"a"}`)
		there.do(409, "lock_held", "PUT", "/fs/_lock/tree/clinton", `{"owner":"b","wait":"0"}`)
		there.do(201, "", "PUT", "/fs/_lock/tree/gore", `{"owner":"b","wait":"0"}`)
		here.release(tree.Lock, "a", tree.Token)
		released := here.do(200, "", "POST", "/_lock/_release", fmt.Sprintf(`{"owner":"a","tokens":[%d,%d]}`, doc.Token, tree.Token))
		if !strings.Contains(released.body, `"released":1`) {
			t.Error(released.body)
		}
	})
}

func TestAClientThatLeavesKeepsNothing(t *testing.T) {
	eachEngine(t, 1, "", func(t *testing.T, _ *engine.Engine, c []client) {
		const path = "/_lock/global/left"
		a := c[0].do(201, "", "PUT", path, `{"owner":"a"}`)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := c[0].try(ctx, "PUT", path, `{"owner":"b","wait":"1m","ttl":"10m"}`)
			gone <- err
		}()
		waiting := func(n int) {
			for {
				if r := c[0].do(200, "", "GET", path, ""); strings.Contains(r.body, fmt.Sprintf(`"waiting":%d`, n)) {
					return
				}
			}
		}
		waiting(1)
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		waiting(0)
		c[0].release(path, "a", a.Token)
		next := c[0].do(201, "", "PUT", path, `{"owner":"c"}`)
		if next.Waited > 1000 {
			t.Errorf("waited for %d ms", next.Waited)
		}
	})
}

func TestAProxyThatIsKilledBlocksNobody(t *testing.T) {
	engine.EachAtOnce(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		config := "locks: {index: " + index + "}\n"
		dying, err := optimist.Run(t.Context(), t.TempDir(), optimist.Options{Upstream: []string{e.URL}, Config: config})
		if err != nil {
			t.Fatal(err)
		}
		alive := client{t, optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: config}).URL}
		const path = "/_lock/global/k"
		holder := client{t, dying.URL}.do(201, "", "PUT", path, `{"owner":"dead","ttl":"1500ms"}`)
		go func() {
			_, _ = client{t, dying.URL}.try(context.Background(), "PUT", path, `{"owner":"waits","wait":"1m","ttl":"10m"}`)
		}()
		for !strings.Contains(alive.do(200, "", "GET", path, "").body, `"waiting":1`) {
		}
		dying.Kill() // with a holder that nobody renews, and a waiter that comes first
		next := alive.do(201, "", "PUT", path, `{"owner":"next","wait":"20s"}`)
		// The lease of the dead, the grace of the one before, and a look.
		if next.Waited > 1500+750+250+500 && e.Kind.Scripts() || next.Waited > 2*1500+2*750+250+500 {
			t.Errorf("waited for %d ms", next.Waited)
		}
		if next.Token <= holder.Token {
			t.Errorf("token %d after %d", next.Token, holder.Token)
		}
	})
}
