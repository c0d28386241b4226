package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/internal/obs"
)

// credentials are a client's own, which make it a session without a header.
func credentials(name string) http.Header {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, "secret")
	return r.Header
}

// TestBlindWriterStoresWhatItSends: a job that writes what it has not read means the whole document. That it once reads something
// changes nothing about that.
func TestBlindWriterStoresWhatItSends(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		doc := "/" + index + "/_doc/1"
		// Shortly after its start the proxy can't know who has read before.
		p := optimistFor(t, e, "sessions: {max_age: 1s}\n")
		job, user := credentials("job"), credentials("user")
		e.send(t, 201, "PUT", doc, `{"a":0,"b":0}`)
		for n := range 9 {
			e.send(t, 201, "PUT", fmt.Sprintf("/%s/_doc/job%d", index, n), `{"a":0,"b":0}`)
		}
		eventually(t, "the job is known for a blind writer", func() (blind bool) {
			for n := range 9 { // one document shows nothing
				a := request(t, 200, "PUT", fmt.Sprintf("%s/%s/_doc/job%d", p.URL, index, n), `{"a":0,"b":0}`, job)
				blind = strings.Contains(a.outcome(), "reason=blind")
			}
			return blind
		})
		request(t, 200, "GET", p.URL+doc, "", job)
		request(t, 200, "GET", p.URL+doc, "", user)
		request(t, 200, "PUT", p.URL+doc, `{"a":0,"b":1}`, user)
		a := request(t, 200, "PUT", p.URL+doc, `{"a":7,"b":0}`, job)
		if got := e.source(t, doc); got != `{"a":7,"b":0}` {
			t.Errorf("the job's document was not stored as it was sent: %s", got)
		}
		if a.outcome() != "passed;attempts=1;base=none;reason=blind" {
			t.Errorf("outcome %q", a.outcome())
		}
		if p.Metric(t, obs.MetricOutcomes, `reason="blind"`) == 0 {
			t.Error("not counted")
		}
		// Others are merged as before, and a session with a name is never blind.
		request(t, 200, "GET", p.URL+doc, "", user)
		request(t, 200, "PUT", p.URL+doc, `{"a":8,"b":0}`, job)
		request(t, 200, "PUT", p.URL+doc, `{"a":7,"b":2}`, user)
		if got := e.source(t, doc); got != `{"a":8,"b":2}` {
			t.Errorf("stored is %s", got)
		}
	})
}

// TestSignedRequestsPassAsTheyAre: a signature covers the query and the body, so that nothing of them may be changed.
func TestSignedRequestsPassAsTheyAre(t *testing.T) {
	seen := make(chan string, 8)
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			seen <- fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, body, r.Header.Get("Authorization"))
		}
		pass.ServeHTTP(w, r)
	}), "")
	const signature = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/es/aws4_request, SignedHeaders=host;x-amz-date, Signature=0f"
	signed := http.Header{"Authorization": {signature}}
	e.send(t, 201, "PUT", doc, `{"a":0,"b":0}`)
	request(t, 200, "GET", p.URL+doc, "", signed)
	e.send(t, 200, "PUT", doc, `{"a":0,"b":1}`)
	a := request(t, 200, "PUT", p.URL+doc+"?refresh=false", `{"a":1,"b":0}`, signed)
	if a.outcome() != "passed;attempts=1;base=none;reason=signed" {
		t.Errorf("outcome %q", a.outcome())
	}
	close(seen)
	var all []string
	for s := range seen {
		all = append(all, s)
	}
	want := []string{"GET " + doc + "  " + signature, "PUT " + doc + `?refresh=false {"a":1,"b":0} ` + signature}
	if strings.Join(all, "\n") != strings.Join(want, "\n") {
		t.Errorf("the engine got\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	if p.Metric(t, obs.MetricOutcomes, `reason="signed"`) != 1 {
		t.Error("not counted")
	}
}

// TestFilteredViewIsGuardedAndNeverMerged: who may not update, as clients with field or document level security may not, may see less
// than is stored. A merge would write that back.
func TestFilteredViewIsGuardedAndNeverMerged(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if !strings.Contains(r.URL.Path, "/_update/") {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":{"root_cause":[],"type":"security_exception","reason":"Can't execute an update request on a shard with field level security"},"status":403}`))
	}), "")
	e.send(t, 201, "PUT", doc, `{"a":0,"b":0}`)
	one, two := session("one"), session("two")
	request(t, 200, "GET", p.URL+doc, "", one)
	request(t, 200, "GET", p.URL+doc, "", two)
	if a := request(t, 200, "PUT", p.URL+doc, `{"a":0,"b":1}`, one); !strings.HasPrefix(a.outcome(), "guarded") {
		t.Errorf("outcome %q", a.outcome())
	}
	a := request(t, 409, "PUT", p.URL+doc, `{"a":1,"b":0}`, two)
	if !strings.Contains(a.outcome(), "reason=filtered") {
		t.Errorf("outcome %q", a.outcome())
	}
	if got := e.source(t, doc); got != `{"a":0,"b":1}` {
		t.Errorf("stored is %s", got)
	}
	request(t, 200, "GET", p.URL+doc, "", two)
	request(t, 200, "PUT", p.URL+doc, `{"a":1,"b":1}`, two)
}

// TestDataStreamsPass: the default rule leaves them alone.
func TestDataStreamsPass(t *testing.T) {
	e := engine.Shared(t, engine.OpenSearch38)
	o := target{e.Kind.String(), e.URL}
	stream := e.Index(t) // its name; the stream is deleted under it
	o.send(t, 200, "PUT", "/_index_template/"+stream, `{"index_patterns":["`+stream+`"],"data_stream":{},"priority":500}`)
	o.send(t, 200, "PUT", "/_data_stream/"+stream, "")
	t.Cleanup(func() {
		for _, path := range []string{"/_data_stream/", "/_index_template/"} {
			if a, err := e.Do(context.Background(), "DELETE", path+stream, ""); err != nil {
				t.Log(a, err)
			}
		}
	})
	p := optimistFor(t, o, "")
	const event = `{"@timestamp":"2026-01-01T00:00:00Z","message":"hello"}`
	request(t, 201, "POST", p.URL+"/"+stream+"/_doc", event, nil)
	request(t, 201, "PUT", p.URL+"/"+stream+"/_create/1", event, nil)
	direct := o.send(t, 400, "PUT", "/"+stream+"/_doc/2", event)
	through := request(t, 400, "PUT", p.URL+"/"+stream+"/_doc/2", event, nil)
	if through.body != direct.body {
		t.Errorf("through: %s\ndirect:  %s", through.body, direct.body)
	}
	if !strings.HasPrefix(through.outcome(), "passed") || !strings.Contains(through.outcome(), "reason=data_stream") {
		t.Errorf("outcome %q", through.outcome())
	}
	bulk := `{"create":{}}` + "\n" + event + "\n"
	request(t, 200, "POST", p.URL+"/"+stream+"/_bulk", bulk, http.Header{"Content-Type": {"application/x-ndjson"}})
}
