package embedded

import (
	"bytes"
	"compress/gzip"
	"fmt"
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

// served is the URL of an engine that listens until the test ends.
func served(t *testing.T, e *Engine) string {
	t.Helper()
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
	return "http://" + ln.Addr().String()
}

func TestServesOverHTTP(t *testing.T) {
	resp, err := http.Get(served(t, New(Options{})) + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("X-Elastic-Product") != "Elasticsearch" {
		t.Fatal(resp.Status, resp.Header)
	}
}

// A hundred kilobytes may hold a hundred megabytes: the limit is that of what they hold, as in the engines.
func TestACompressedBodyIsNoWayAroundTheLimit(t *testing.T) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range maxBody>>20 + 1 {
		_, _ = z.Write(blank) // a buffer takes everything
	}
	_ = z.Close()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", served(t, New(Options{}))+"/shop/_doc/1", &b)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.Status)
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

// A number of four million digits took 25 s as a big.Float, which forgets the last ones. Here the last digit decides, and fewer digits will
// do.
func TestLongNumbersAreComparedDigitByDigit(t *testing.T) {
	digits := strings.Repeat("7", 200_000)
	e := New(Options{})
	ask(t, e, "PUT", "/c", `{"mappings":{"properties":{"n":{"type":"long"},"d":{"type":"double"}}}}`)
	if status, body := ask(t, e, "PUT", "/c/_doc/1", `{"n":`+digits+`}`); status != 400 || !strings.HasSuffix(body, `) out of range of long"}},"status":400}`) {
		t.Errorf("%d %.200s", status, body)
	}
	if status, body := ask(t, e, "PUT", "/c/_doc/1", `{"n":1.`+digits+`,"d":0.`+digits+`5}`); status != 201 {
		t.Errorf("%d %.200s", status, body)
	}
	for bound, want := range map[string]string{"4": `{"count":1,`, "6": `{"count":0,`} {
		if status, body := ask(t, e, "GET", "/c/_count", `{"query":{"range":{"d":{"gt":"0.`+digits+bound+`"}}}}`); status != 200 || !strings.HasPrefix(body, want) {
			t.Errorf("%s: %d %.200s, want %s", bound, status, body, want)
		}
	}
}

// Each field was put in its place among all of the document's before they were counted: half a million of them took minutes.
func TestADocumentWithTooManyFieldsIsRefusedAtTheFirstThatIsTooMany(t *testing.T) {
	var doc strings.Builder
	for i := range 3 * maxFields {
		fmt.Fprintf(&doc, `,"f%d":1`, i)
	}
	source := []byte("{" + doc.String()[1:] + "}")
	n, _, err := parseJSON(source)
	if err != nil {
		t.Fatal(err)
	}
	c := checker{m: &mapping{root: field{typ: "object"}}, src: source, learning: true}
	if err := c.object(&c.m.root, n, ""); err == nil || c.m.fields != maxFields+1 {
		t.Errorf("%v after %d fields", err, c.m.fields)
	}
}
