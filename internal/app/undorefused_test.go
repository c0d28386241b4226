package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// The clients that a securedEngine knows.
var (
	nobody  = []string{}
	reader  = []string{"Authorization", "Basic cmVhZGVyOnNlY3JldA=="} // may not write
	limited = []string{"Authorization", "Basic bWFrZXI6c2VjcmV0"}     // may write, but not what the engine has a rule against
)

// securedEngine is an engine that refuses clients, and two proxies before it that have credentials of their own.
func securedEngine(t *testing.T) (proxies [2]*undoWorld) {
	t.Helper()
	engine := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || strings.HasSuffix(r.URL.Path, "/_mget")
		status := 0
		switch probe := strings.Contains(r.URL.Path, "optimist-probe-"); {
		case user == "":
			status = http.StatusUnauthorized
		case user == "reader" && !reads, user == "maker" && !reads && !probe:
			status = http.StatusForbidden
		default:
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_, _ = fmt.Fprintf(rw, `{"error":{"type":"security_exception","reason":"refused"},"status":%d}`, status)
		return true
	})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := "auth: {basic_file: '" + secret + "'}"
	for i := range proxies {
		c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nupstream: {health_interval: 0s, "+auth+"}\n"+
			"undo: {"+auth+", grace: 200ms}\n"), config.Overrides{Upstream: []string{engine}, Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		proxies[i] = &undoWorld{t, running(t, c)}
	}
	return proxies
}

// owner is who may do everything.
var owner = []string{"Authorization", "Basic b3duZXI6c2VjcmV0"}

const refusedBulk = `{"create":{"_id":"1"}}` + "\n{}\n"

// TestNobodyHasADocumentDeletedByTheUndoOfARefusedWrite: the rollback has credentials that may delete it, and the client has none.
func TestNobodyHasADocumentDeletedByTheUndoOfARefusedWrite(t *testing.T) {
	for name, client := range map[string][]string{"nobody": nobody, "a reader": reader, "one that the engine refuses this write": limited} {
		for kind, write := range map[string][3]string{
			"a create": {"PUT", "/docs/_create/1", "{}"}, "a create with PUT": {"PUT", "/docs/_doc/1?op_type=create", "{}"},
			"a write": {"PUT", "/docs/_doc/1", "{}"}, "a delete": {"DELETE", "/docs/_doc/1", ""}, "a bulk": {"POST", "/docs/_bulk", refusedBulk},
		} {
			for _, there := range []bool{true, false} {
				t.Run(fmt.Sprint(name, ", ", kind, ", of a document that is there: ", there), func(t *testing.T) {
					p := securedEngine(t)
					p[0].ask(201, "PUT", "/docs/_doc/0", "{}", owner...)
					if there {
						p[0].ask(201, "PUT", "/docs/_doc/1", "{}", owner...)
					}
					token, field := p[0].lock("/_lock/global/x", "attacker", "")
					a := enginetest.Ask(t, write[0], p[0].app.URL()+write[1], write[2],
						append(append([]string{"Content-Type", "application/json"}, field...), client...)...)
					if a.Status < 400 && !strings.Contains(a.Body, `"errors":true`) {
						t.Errorf("%d %s", a.Status, a.Body)
					}
					if !there {
						p[0].ask(201, "PUT", "/docs/_doc/1", "{}", owner...)
					}
					p[1].ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=attacker&token="+token, "")
					p[0].ask(200, "GET", "/docs/_doc/1", "", owner...)
				})
			}
		}
	}
}

// TestWhoMayNotWriteLeavesNothingInTheJournal: locks are free, so that anybody could fill the engine's disk.
func TestWhoMayNotWriteLeavesNothingInTheJournal(t *testing.T) {
	p := securedEngine(t)
	p[0].ask(201, "PUT", "/docs/_doc/0", "{}", owner...)
	token, field := p[0].lock("/_lock/global/x", "attacker", "")
	for _, client := range [][]string{nobody, reader} {
		fields := append(append([]string{"Content-Type", "application/json"}, field...), client...)
		for i := range 3 {
			_ = enginetest.Ask(t, "PUT", fmt.Sprint(p[0].app.URL(), "/docs/_create/", i), "{}", fields...)
		}
		_ = enginetest.Ask(t, "POST", p[0].app.URL()+"/docs/_bulk", refusedBulk, fields...)
	}
	p[0].ask(404, "GET", "/optimist-undo/_doc/page-"+token+"-1", "", owner...)
}
