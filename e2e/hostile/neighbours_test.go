package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/internal/enginetest"
)

// neighbourhood is a process with few connections to its engine. The engine doesn't answer writes that wait for shards: their number
// stands in waiting, and those that optimist gave up in ended.
type neighbourhood struct {
	*target
	waiting, ended chan struct{}
}

const places = 16

func newNeighbourhood(t *testing.T, config string) *neighbourhood {
	n := &neighbourhood{waiting: make(chan struct{}, 10*places), ended: make(chan struct{}, 10*places)}
	over := make(chan struct{})
	url := enginetest.Between(t, engine.Embedded(t), func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("wait_for_active_shards") {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // net/http sees that the sender has left only after the body
		n.waiting <- struct{}{}
		select {
		case <-r.Context().Done():
			n.ended <- struct{}{}
		case <-over:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return true
	})
	n.target = startAt(t, url, config)
	t.Cleanup(func() { close(over) }) // before the engine is closed, which waits for its requests
	for id := range 2 * places {
		n.put(t, "/shop/_doc/"+strconv.Itoa(id), fmt.Sprintf(`{"n":%d,"text":%q}`, id, strings.Repeat("a", 1000)))
	}
	return n
}

// settled is a configuration under which a read makes the next write of its session one that is guarded.
const settled = "rules: [{name: shop, match: {index: [shop]}}]\n"

// from makes a request from an address of this machine.
func (n *neighbourhood) from(t *testing.T, addr, method, path, body string, fields ...string) (status int, answer, outcome string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, n.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s from %s: %v", method, path, addr, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s from %s: %v", method, path, addr, err)
	}
	return res.StatusCode, string(text), res.Header.Get("Optimist-Outcome")
}

// waits sends a write that waits for shards, and returns once the engine has it, or at once, if it isn't to get there.
func (n *neighbourhood) waits(t *testing.T, id int, arrives bool) net.Conn {
	t.Helper()
	c := n.dial(t)
	_, err := c.Write(request("PUT", "/shop/_doc/"+strconv.Itoa(id)+"?wait_for_active_shards=2&timeout=20s", []byte(`{"n":-1}`),
		"Content-Type", "application/json", "Optimist-Session", "held "+strconv.Itoa(id), "If-None-Match", ""))
	if err != nil {
		t.Fatal(err)
	}
	if arrives {
		n.await(t, n.waiting, "a write that waits for shards")
	}
	return c
}

func (n *neighbourhood) await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s didn't come", what)
	}
}

func TestAWriteThatWaitsForShardsHoldsNobodyUp(t *testing.T) {
	n := newNeighbourhood(t, settled)
	n.ask(t, "GET", "/shop/_doc/1", "", "Optimist-Session", "held 1")
	n.waits(t, 1, true)
	for _, method := range []string{"PUT", "PATCH"} {
		_, _, _ = n.from(t, "127.0.0.1", "GET", "/shop/_doc/1", "", "Optimist-Session", method)
		media := "application/json"
		if method == "PATCH" {
			media = "application/merge-patch+json"
		}
		status, answer, outcome := n.from(t, "127.0.0.1", method, "/shop/_doc/1", `{"n":2}`, "Optimist-Session", method, "Content-Type", media)
		if status != http.StatusOK || strings.HasPrefix(outcome, "passed") {
			t.Errorf("%s: %d %s [%s]", method, status, answer, outcome)
		}
	}
	select {
	case <-n.ended:
		t.Error("the others waited until the write was given up")
	default:
	}
}

func TestAWriteWhoseClientLeftGivesItsPlaceBack(t *testing.T) {
	n := newNeighbourhood(t, settled)
	n.ask(t, "GET", "/shop/_doc/1", "", "Optimist-Session", "held 1")
	_ = n.waits(t, 1, true).Close()
	n.await(t, n.ended, "the end of the write")
}

func TestOneClientsRequestsLeaveConnectionsToOthers(t *testing.T) {
	n := newNeighbourhood(t, "upstream: {max_connections: "+strconv.Itoa(places)+", acquire_timeout: 1m}\n"+settled)
	for id := range 2 * places {
		n.waits(t, id, false)
	}
	for range places * 3 / 4 {
		n.await(t, n.waiting, "a write that waits for shards")
	}
	for _, method := range []string{"GET", "PUT"} {
		if status, answer, _ := n.from(t, "127.0.0.2", method, "/shop/_doc/other", `{"n":1}`); status > 404 {
			t.Errorf("%s: %d %s", method, status, answer)
		}
	}
}

// A request for locks may have optimist search, read documents or refresh on the client's behalf. These requests take the client's
// connections, and not those that are optimist's own, by which it answers all requests for locks.
func TestWhatOneClientsLocksAskLeavesConnectionsToOthersLocks(t *testing.T) {
	for name, c := range map[string]struct{ method, path, body, asks string }{
		"a search":       {"POST", "/shop/_lock/docs", `{"owner":"o%d","query":{"match_all":{}}}`, "/shop/_search"},
		"a touch":        {"PUT", "/shop/_lock/doc/%d?fence=touch", `{"owner":"o%[1]d"}`, "/_mget"},
		"the book's way": {"POST", "/fs/_refresh?n=%d", "", "/fs/_refresh"},
		"made-up tokens": {"PUT", "/shop/_doc/1?lock_token=%d7", "{}", "/optimist-undo/_mget"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, over := make(chan struct{}, 10*places), make(chan struct{})
			url := enginetest.Between(t, engine.Embedded(t), func(w http.ResponseWriter, r *http.Request) bool {
				body, err := io.ReadAll(r.Body)
				if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil || r.URL.Path != c.asks || bytes.Contains(body, []byte(`"lock-`)) {
					return false // or optimist asks what was begun under a lock
				}
				asked <- struct{}{}
				<-over
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			})
			secret := filepath.Join(t.TempDir(), "undo")
			if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			n := &neighbourhood{target: startAt(t, url, "upstream: {max_connections: "+strconv.Itoa(places)+", acquire_timeout: 1m}\n"+
				"locks: {compat: {index: fs}}\nundo: {auth: {basic_file: '"+secret+"'}}\n"+
				"rules: [{name: shop, locks: enforce, match: {index: [shop]}}]\n")}
			t.Cleanup(func() { close(over) })
			n.put(t, "/shop/_doc/1", `{}`)
			if status, answer, _ := n.from(t, "127.0.0.2", "PUT", "/_lock/global/a", `{"owner":"anna"}`); status != http.StatusCreated {
				t.Fatalf("%d %s", status, answer)
			}
			for i := range 3 * places {
				path, body := c.path, c.body
				if strings.Contains(path, "%d") {
					path = fmt.Sprintf(path, i)
				}
				if strings.Contains(body, "%") {
					body = fmt.Sprintf(body, i)
				}
				if _, err := n.dial(t).Write(request(c.method, path, []byte(body), "Content-Type", "application/json")); err != nil {
					t.Fatal(err)
				}
			}
			for range places * 3 / 4 {
				n.await(t, asked, "what is asked for a lock")
			}
			if status, answer, _ := n.from(t, "127.0.0.2", "PUT", "/_lock/global/b", `{"owner":"anna"}`); status != http.StatusCreated {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
}

func TestOneClientsSlowReadersLeaveConnectionsToOthers(t *testing.T) {
	large := make(chan struct{}, 10*places)
	url := enginetest.Between(t, engine.Embedded(t), func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/large") {
			return false
		}
		large <- struct{}{}
		piece := make([]byte, mebi)
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				break
			}
		}
		return true
	})
	n := &neighbourhood{target: startAt(t, url, "upstream: {max_connections: "+strconv.Itoa(places)+", acquire_timeout: 1m}\n")}
	for range 2 * places {
		c := n.dial(t)
		if _, err := c.Write(request("GET", "/large/_search", nil)); err != nil {
			t.Fatal(err)
		}
	}
	for range places * 3 / 4 {
		n.await(t, large, "a large answer")
	}
	if status, answer, _ := n.from(t, "127.0.0.2", "PUT", "/shop/_doc/other", `{"n":1}`); status != http.StatusCreated {
		t.Errorf("%d %s", status, answer)
	}
}

func TestOneClientsConnectionsLeaveOthersAPlace(t *testing.T) {
	n := newNeighbourhood(t, "limits: {max_connections: "+strconv.Itoa(places)+"}\n")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	refused := 0
	for range 2 * places {
		c := n.dial(t)
		if _, err := c.Write(request("GET", "/", nil)); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || strings.Contains(line, "503") {
			refused++
		}
	}
	if refused < places {
		t.Errorf("%d of %d were refused", refused, 2*places)
	}
	if status, answer, _ := n.from(t, "127.0.0.2", "GET", "/shop/_doc/1", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
}
