package app

import (
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// TestLockRequestsMayBeCompressed: clients that compress their requests compress all of them.
func TestLockRequestsMayBeCompressed(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	for target, method := range map[string]string{"/_lock/global/a": "PUT", "/shop/_lock/doc/7": "PUT", "/shop/_lock/docs": "POST"} {
		body := `{"owner":"anna"}`
		if method == "POST" {
			body = `{"owner":"anna","ids":["1","2"]}`
		}
		a := w.ask(w.proxied, method, target, zipped(body), "Content-Encoding", "gzip")
		if a.Status != 201 || gjson.Get(a.Body, "owner").Str != "anna" {
			t.Errorf("%s %s: %d %s", method, target, a.Status, a.Body)
		}
		if method != "POST" {
			continue
		}
		if a := w.ask(w.proxied, "DELETE", target, zipped(a.Body), "Content-Encoding", "gzip"); a.Status != 200 {
			t.Errorf("the release: %d %s", a.Status, a.Body)
		}
	}
}

// TestALockRequestThatCannotBeReadIsToldWhy: the content coding is what is wrong, and not the first byte.
func TestALockRequestThatCannotBeReadIsToldWhy(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	for coding, want := range map[string]string{
		"zstd": `the body can't be read: unknown content coding: "zstd"`,
		"gzip": "the body can't be read: the body isn't the gzip data that its Content-Encoding says: gzip: invalid header",
	} {
		a := w.ask(w.proxied, "PUT", "/_lock/global/a", `{"owner":"anna"}`, "Content-Encoding", coding)
		if a.Status != 400 || gjson.Get(a.Body, "error.type").Str != "parse_exception" || gjson.Get(a.Body, "error.reason").Str != want {
			t.Errorf("%s: %d %s", coding, a.Status, a.Body)
		}
	}
}
