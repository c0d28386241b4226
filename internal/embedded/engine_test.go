package embedded

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

// ask sends one JSON request straight to the engine.
func ask(t testing.TB, e *Engine, method, target, body string) (int, string) {
	t.Helper()
	r := e.Handle(&Request{Method: method, Target: target, ContentType: "application/json", Body: []byte(body)})
	return r.Status, string(r.Body)
}

func TestGuardedWriteSucceedsOnceAndThenConflicts(t *testing.T) {
	e := New(Options{})
	if st, b := ask(t, e, "PUT", "/shop/_doc/1", `{"n":1}`); st != 201 || !strings.Contains(b, `"_seq_no":0,"_primary_term":1`) {
		t.Fatal(st, b)
	}
	if st, b := ask(t, e, "PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":2}`); st != 200 {
		t.Fatal(st, b)
	}
	if st, b := ask(t, e, "PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":3}`); st != 409 || !strings.Contains(b, "current document has seqNo [1]") {
		t.Fatal(st, b)
	}
	if st, b := ask(t, e, "GET", "/shop/_doc/1", ``); st != 200 || !strings.Contains(b, `"_source":{"n":2}`) {
		t.Fatal(st, b)
	}
}

func TestServesOverHTTP(t *testing.T) {
	e := New(Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	resp, err := http.Get("http://" + ln.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("X-Elastic-Product") != "Elasticsearch" {
		t.Fatal(resp.Status, resp.Header)
	}
}

func TestHugeExponentsCostNothing(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c", `{"mappings":{"properties":{"d":{"type":"double"}}}}`)
	ask(t, e, "PUT", "/c/_doc/1", `{"d":1e999999999}`)
	if status, body := ask(t, e, "GET", "/c/_count", `{"query":{"range":{"d":{"gt":-1e-999999999,"lt":1e2147483646}}}}`); status != 200 {
		t.Error(status, body)
	}
	ask(t, e, "PUT", "/c/_doc/2", `{"n":1}`)
	if status, body := ask(t, e, "PUT", "/c/_doc/2", `{"n":1e999999999}`); status != 400 {
		t.Error(status, body)
	}
}
