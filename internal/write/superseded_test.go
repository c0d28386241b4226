package write

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"optimist/internal/identity"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// A change whose base the lane has replaced reads first. If the engine doesn't let it read, the engine's own conflict is its answer, as it
// is where the change is tried first.
func TestAChangeThatCantReadFirstIsTried(t *testing.T) {
	for name, status := range map[string]int{"the client may not read": 403, "the engine has no time": 429, "the engine fails": 503} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "")
				w.put("1", `{"l":[]}`)
				w.warm("1")
				var cs []*client
				for i := range 2 {
					cs = append(cs, w.client(fmt.Sprint("c", i)))
					cs[i].read("1")
				}
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method == "GET" && strings.Contains(string(r.Target), "/_doc/1") {
						return answering(status, fmt.Sprintf(`{"error":{"type":"x"},"status":%d}`, status)), nil
					}
					return nil, nil
				}
				results := w.queued(2, func(i int) result { return cs[i].send("POST", "/shop/_update/1", fmt.Sprintf(`{"doc":{"l":[%d]}}`, i)) })
				has(t, results[0], 200, "guarded")
				has(t, results[1], 409, "guarded;attempts=1")
				same(t, w.stored("1"), `{"l":[0]}`)
			})
		})
	}
}

// What was read before the first try is good for a write only. The engine has to let the client write before a change that needs no write
// counts as made, or a refused one as one that could be made later.
func TestNothingIsDecidedBeforeTheFirstTry(t *testing.T) {
	alice, bob := identity.CredentialsOf([]byte("alice")), identity.CredentialsOf([]byte("bob"))
	for name, c := range map[string]struct {
		method, body string // of the second change
		forbidden    bool
		status       int
	}{
		"nothing to write":               {"PUT", `{"status":"new","m":1}`, false, 200},
		"nothing to write, nor allowed":  {"PUT", `{"status":"new","m":1}`, true, 403},
		"what both set":                  {"PUT", `{"status":"paid","m":1}`, false, 202},
		"a refused merge":                {"PUT", `{"status":"sent"}`, false, 202},
		"a refused merge, not allowed":   {"PUT", `{"status":"sent"}`, true, 403},
		"another change of it":           {"PUT", `{"status":"new","n":1}`, false, 200},
		"a delete that isn't allowed":    {"DELETE", "", true, 403},
		"another change, but forbidden":  {"PUT", `{"status":"new","n":1}`, true, 403},
		"a delete of what was rewritten": {"DELETE", "", false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shelf := letterWorld(t, letterRule)
				w.put("1", `{"status":"new"}`)
				var cs []*client
				for i, credentials := range []session.Credentials{alice, bob} {
					cs = append(cs, &client{w: w, sess: identity.Named(credentials, fmt.Append(nil, i))})
					cs[i].read("1")
				}
				writes := 0
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if isWrite(r) {
						if writes++; writes > 1 && c.forbidden {
							return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
						}
					}
					return nil, nil
				}
				results := w.queued(2, func(i int) result {
					if i == 0 {
						return cs[i].save("1", `{"status":"paid","m":1}`)
					}
					return cs[i].send(c.method, "/shop/_doc/1", c.body)
				})
				has(t, results[0], 200, "guarded")
				has(t, results[1], c.status, "")
				if writes != 2 {
					t.Errorf("%d tries, want one of each", writes)
				}
				for _, l := range shelf.kept {
					if !l.Checked {
						t.Errorf("the engine wasn't asked whether the client may write: %v", results[1])
					}
				}
			})
		})
	}
}
