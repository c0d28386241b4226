package hostile

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/e2e/hostile/attacks"
)

// startRefused runs the program in front of an engine that refuses all credentials. asked is how many requests that engine has got.
func startRefused(t *testing.T, config string) (g *target, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"type":"security_exception"},"status":401}`)
	}))
	t.Cleanup(refusing.Close)
	return startAt(t, refusing.URL, config), asked
}

// An engine that refuses a client's credentials isn't asked for each item of the client's bulk: 10 KB of gzip data were 150,000 requests to
// the engine, and 20 s of processor time.
func TestRefusedCredentialsEndABulk(t *testing.T) {
	// One request asks who the engine is, one what the index is, and one reads the document. Items that are under way at the same time may
	// ask in several requests. Without the rule there were at least 35 requests.
	const most = 20
	for name, item := range map[string]string{
		"of one document":   `{"index":{"_id":"1"}}`,
		"of many documents": `{"index":{"_id":"%d"}}`,
		"of deletes":        `{"delete":{"_id":"1"}}`,
		"of many indices":   `{"delete":{"_index":"i%d","_id":"1"}}`,
	} {
		for held, body := range map[string]string{"held": "4MiB", "in windows": "16KiB"} {
			t.Run(name+", "+held, func(t *testing.T) {
				g, asked := startRefused(t, "limits: {max_guarded_body: "+body+"}\n"+attacks.Config)
				part := item + "\n"
				if !strings.Contains(item, "delete") {
					part += "{\"a\":1}\n"
				}
				body := []byte(attacks.Fill(1<<20, part, ""))
				path := "/i/_bulk"
				if strings.Contains(item, "_index") {
					path = "/_bulk"
				}
				if status := g.exchange(request("POST", path, body, "Content-Type", "application/x-ndjson")); status != http.StatusUnauthorized {
					t.Errorf("the client got a %d", status)
				}
				if n := asked.Load(); n == 0 || n > most {
					t.Errorf("the engine got %d requests", n)
				}
			})
		}
	}
}
