package app

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// TestALockedDocumentIsLockedForWhoeverWouldChangeNothing: a client is told that a document is locked, whatever would become of its write.
func TestALockedDocumentIsLockedForWhoeverWouldChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name, method, target, body string
		fields                     []string
		free                       int // the status while nobody has locked it
	}{
		{"a PATCH that changes nothing", "PATCH", "/shop/_doc/1", `{"n":1}`, nil, 200},
		{"an _update that changes nothing", "POST", "/shop/_update/1", `{"doc":{"n":1}}`, nil, 200},
		{"an _update of nothing in a bulk", "POST", "/shop/_bulk", lines(`{"update":{"_id":"1"}}`, `{"doc":{"n":1}}`), nil, 200},
		{"a PATCH with a test that fails", "PATCH", "/shop/_doc/1", `[{"op":"test","path":"/n","value":7}]`,
			[]string{"Content-Type", "application/json-patch+json"}, 409},
		{"a PATCH of what isn't there", "PATCH", "/shop/_doc/none", `{"n":1}`, nil, 404},
		{"a delete of what isn't there", "DELETE", "/shop/_doc/none", ``, nil, 404},
		{"a delete of nothing", "DELETE", "/shop/_doc/1", ``, []string{"If-None-Match", "*"}, 409},
		{"a create of what is there", "PUT", "/shop/_doc/1", `{}`, []string{"If-None-Match", "*"}, 409},
		{"a stale guard", "PUT", "/shop/_doc/1?if_seq_no=77&if_primary_term=1", `{}`, nil, 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := enforced(t, enginetest.Serve(t), "")
			w.put("/shop/_doc/1", `{"n":1}`)
			if status, kind := w.write(c.name, c.method, c.target, c.body, c.fields...); status != c.free {
				t.Errorf("with nothing locked: %d %s, not %d", status, kind, c.free)
			}
			tokens := map[string]string{}
			for _, id := range []string{"1", "none"} {
				tokens[id] = w.acquire("/shop/_lock/doc/"+id, "anna")
			}
			if status, kind := w.write(c.name, c.method, c.target, c.body, c.fields...); status != 423 || kind != "document_locked" {
				t.Errorf("without a token: %d %s", status, kind)
			}
			fields := append([]string{"Optimist-Lock-Token", tokens["1"]}, c.fields...)
			if strings.Contains(c.target, "none") {
				fields[1] = tokens["none"]
			}
			if status, kind := w.write(c.name, c.method, c.target, c.body, fields...); status != c.free {
				t.Errorf("by the holder: %d %s, not %d", status, kind, c.free)
			}
			w.holds("/shop/_doc/1", `{"n":1}`)
		})
	}
}

// TestAMergeThatChangesNothingIsOfALockedDocumentToo: the client's change is there already, when its write conflicts.
func TestAMergeThatChangesNothingIsOfALockedDocumentToo(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{"n":1}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "a")
	w.put("/shop/_doc/1", `{"n":2}`)
	token := w.acquire(lockOf1, "anna")
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "a"); a.Status != 423 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "a", "Optimist-Lock-Token", token)
	if a.Status != 200 || gjson.Get(a.Body, "result").Str != "noop" {
		t.Errorf("by the holder: %d %s", a.Status, a.Body)
	}
}

// TestALockByAnyNameOfAnIndexKeepsWritesOut: of the index's own, of the alias that the write uses, and of another alias.
func TestALockByAnyNameOfAnIndexKeepsWritesOut(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_path: /path")
	w.put("/shop", `{"aliases":{"store":{},"kiosk":{},"café":{}}}`)
	w.put("/shop/_doc/1", `{"n":1,"path":"/a/b"}`)
	names := []string{"shop", "store", "kiosk", "caf%C3%A9"}
	for _, of := range names {
		for _, lock := range []string{"/" + of + "/_lock/doc/1", "/" + of + "/_lock/tree/a"} {
			token := w.acquire(lock, "anna")
			for _, through := range names {
				for _, c := range everyWrite[:6] {
					target := strings.Replace(c.target, "/shop/", "/"+through+"/", 1)
					if c.method == "PUT" && strings.Contains(lock, "tree") && c.name == "a create" {
						continue // its document has no path
					}
					if status, kind := w.write(c.name, c.method, target, c.body); status != 423 {
						t.Errorf("%s of %s, with %s: %d %s", c.name, target, lock, status, kind)
					}
				}
				a := w.ask(w.proxied, "PUT", "/"+through+"/_doc/1", `{"n":1,"path":"/a/b"}`, "Optimist-Lock-Token", token)
				if a.Status != 200 {
					t.Errorf("the holder, through %s, with %s: %d %s", through, lock, a.Status, a.Body)
				}
			}
			w.release(lock, "anna", token)
		}
	}
}

// TestALockOfADataStreamKeepsWritesOut: by its name, or by an alias that the engine tells of the stream alone. Writes change what is in a
// stream by the name of the index behind it.
func TestALockOfADataStreamKeepsWritesOut(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		answer := map[string]string{"/shop": `{"shop":{"data_stream":"stream","settings":{"index":{"uuid":"u","number_of_shards":"1"}}}}`,
			"/stream/_alias": `{"stream":{"aliases":{"kiosk":{}}}}`}
		answer["/stream"], answer["/kiosk"] = answer["/shop"], answer["/shop"]
		body, ok := answer[r.URL.Path]
		if ok = ok && r.Method == http.MethodGet; ok {
			out.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(out, body)
		}
		return ok
	})
	w := enforced(t, engine, "")
	w.ask(engine, "PUT", "/shop", `{"aliases":{"stream":{},"kiosk":{}}}`)
	w.ask(engine, "PUT", "/shop/_doc/1", `{"n":1}`)
	names := []string{"shop", "stream", "kiosk"}
	for _, of := range names {
		lock := "/" + of + "/_lock/doc/1"
		token := w.acquire(lock, "anna")
		for _, c := range everyWrite {
			want := 423
			if !strings.Contains(c.target, "if_seq_no") && !strings.Contains(c.body, "doc") && c.method != "PATCH" && c.name != "a create" {
				want = 400 // the engine takes no such write in a data stream, and optimist gives it no guard
			}
			if status, kind := w.write(c.name, c.method, c.target, c.body); status != want {
				t.Errorf("%s, with %s: %d %s", c.name, lock, status, kind)
			}
		}
		for _, through := range names {
			if status, kind := w.write("a create", "PUT", "/"+through+"/_create/1", `{}`); status != 423 {
				t.Errorf("a create by %s, with %s: %d %s", through, lock, status, kind)
			}
		}
		if a := w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"of":"`+of+`"}}`, "Optimist-Lock-Token", token); a.Status != 200 {
			t.Errorf("the holder, with %s: %d %s", lock, a.Status, a.Body)
		}
		w.release(lock, "anna", token)
	}
}

// TestALockByAnotherNameKeepsNewDocumentsOut: of a create nothing else has to be asked.
func TestALockByAnotherNameKeepsNewDocumentsOut(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_path: /path")
	w.put("/shop", `{"aliases":{"store":{},"kiosk":{}}}`)
	w.acquire("/kiosk/_lock/doc/1", "anna")
	w.acquire("/kiosk/_lock/tree/a", "anna")
	for _, c := range []struct{ target, body string }{
		{"/store/_create/1", `{"path":"/x"}`}, {"/store/_create/2", `{"path":"/a/x"}`}, {"/store/_doc", `{"path":"/a/x"}`},
	} {
		if a := w.ask(w.proxied, "POST", c.target, c.body); a.Status != 423 {
			t.Errorf("%s %s: %d %s", c.target, c.body, a.Status, a.Body)
		}
	}
	for _, target := range []string{"/store/_create/3", "/store/_doc"} {
		if a := w.ask(w.proxied, "POST", target, `{"path":"/b"}`); a.Status != 201 {
			t.Errorf("%s: %d %s", target, a.Status, a.Body)
		}
	}
}

// TestADryRunSaysWhoHasTheLock, and changes nothing of it.
func TestADryRunSaysWhoHasTheLock(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{"n":1}`)
	dry := func(fields ...string) (status int64, document string, answer gjson.Result) {
		t.Helper()
		a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, append(fields, "Optimist-Dry-Run", "true")...)
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return gjson.Get(a.Body, "outcome.status").Int(), gjson.Get(a.Body, "document").Raw, gjson.Get(a.Body, "outcome.error")
	}
	if status, document, _ := dry(); status != 200 || document != `{"n":2}` {
		t.Errorf("with nothing locked: %d %s", status, document)
	}
	token := w.acquire(lockOf1, "anna")
	status, document, answer := dry()
	if status != 423 || document != "" || answer.Get("type").Str != "document_locked" || !strings.Contains(answer.Get("reason").Str, "held by anna") {
		t.Errorf("locked: %d %s %s", status, document, answer)
	}
	if status, _, answer := dry("Optimist-Lock-Token", "7"); status != 409 || answer.Get("type").Str != "stale_token" {
		t.Errorf("with a stale token: %d %s", status, answer)
	}
	if status, document, answer := dry("Optimist-Lock-Token", token); status != 200 || document != `{"n":2}` {
		t.Errorf("by the holder: %d %s %s", status, document, answer)
	}
	w.holds("/shop/_doc/1", `{"n":1}`)
	if n := w.counted("optimist_outcomes_total", "reason", "locked"); n != 0 {
		t.Errorf("%v are counted", n)
	}
}
