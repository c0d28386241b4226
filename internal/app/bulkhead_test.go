package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// A bulk that says too much of all its items goes as it is: each item would have to say it again. Where locks are enforced, it is refused.
func TestABulkWithALongHeadIsForwardedAsItIs(t *testing.T) {
	const text = `{"index":{"_id":"1"}}` + "\n" + `{"n":1}` + "\n"
	for query, outcome := range map[string]string{
		"?timeout=" + strings.Repeat("0", 900) + "9s":  "guarded;items=1",
		"?timeout=" + strings.Repeat("0", 1100) + "9s": "passed;attempts=1;base=none;reason=too_large",
		"?" + strings.Repeat("&", 4000):                "guarded;items=1", // it says nothing of the items
		"?filter_path=" + strings.Repeat("a,", 600):    "passed;attempts=1;base=none;reason=too_large",
	} {
		w := newWorld(t, "rules: [{name: r, base: {unknown: fetch}}]", Identity{})
		if a := w.ask(w.proxied, "POST", "/shop/_bulk"+query, text); !strings.HasPrefix(a.Outcome(), outcome) {
			t.Errorf("%.20s: %d %s [%s]", query, a.Status, a.Body, a.Outcome())
		}
	}
	w := enforced(t, enginetest.Serve(t), "")
	if a := w.ask(w.proxied, "POST", "/shop/_bulk?timeout="+strings.Repeat("0", 1100)+"9s", text); a.Status < 400 {
		t.Errorf("locks are enforced: %d %s [%s]", a.Status, a.Body, a.Outcome())
	}
}

// Credentials that the engine refuses for one item are refused for all, in one answer, as the engine would answer the bulk. What the client may
// not do with one document says nothing of others.
func TestOnlyRefusedCredentialsEndABulk(t *testing.T) {
	const items = 3
	for status, want := range map[int]struct{ answer, results, asked int }{401: {401, 0, 1}, 403: {200, items, items}} {
		asked := 0
		url := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/shop/_doc/") {
				return false
			}
			asked++
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Add("WWW-Authenticate", "Negotiate")
			rw.Header().Add("WWW-Authenticate", "Basic")
			rw.WriteHeader(status)
			_, _ = fmt.Fprintf(rw, `{"error":{"type":"security_exception"},"status":%d}`, status)
			return true
		})
		w := newWorldOn(t, "rules: [{name: r, base: {unknown: fetch}}]", Identity{}, url)
		text := strings.Repeat(`{"index":{"_id":"1"}}`+"\n"+`{"n":1}`+"\n", items)
		a := w.ask(w.proxied, "POST", "/shop/_bulk", text)
		if n := strings.Count(told(a), fmt.Sprint(" ", status, " ")); a.Status != want.answer || n != want.results || asked != want.asked {
			t.Errorf("%d: %d %s, after %d reads", status, a.Status, a.Body, asked)
		}
		if n := len(a.Header.Values("WWW-Authenticate")); a.Status == 401 && n != 2 {
			t.Errorf("the client is told %d ways to say who it is, and the engine named 2", n)
		}
	}
}

// TestAStrangersBulkHasFewIndicesAskedAbout: optimist asks with its own credentials, by which no answer says that the engine refuses the
// client. Each name that the client makes up would be a question to the engine, or two.
func TestAStrangersBulkHasFewIndicesAskedAbout(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("optimist:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const names = 100
	for rule, more := range map[string]string{"a guard": "base: {unknown: fetch}", "a merge": "merge: {default: sent}", "none": "match: {index: [y]}",
		"by another name": "match: {index: [x]}, base: {unknown: fetch}"} {
		for client, want := range map[string]struct{ status, most int }{
			"":                   {401, 20},
			"Basic YTph":         {200, 4 * names},
			"Basic d3JpdGVyOmE=": {200, 4 * names}, // writer:a, who may write, and may not ask what engine it is
		} {
			var own, asked atomic.Int64
			engine := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
				user, _, _ := r.BasicAuth()
				asked.Add(1)
				if user == "optimist" {
					own.Add(1)
				}
				refused := user == "" || user == "writer" && r.URL.Path == "/"
				if r.Method == http.MethodPost && r.Header.Get("Content-Length") == "" && len(r.TransferEncoding) == 0 {
					rw.WriteHeader(http.StatusLengthRequired)
					return true
				}
				if refused {
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(rw, `{"error":{"type":"security_exception"},"status":401}`)
				}
				return refused
			})
			c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nlocks: {path: ''}\nupstream: {health_interval: 0s, auth: {basic_file: '"+
				secret+"'}}\nrules: [{name: r, "+more+"}]"), config.Overrides{Upstream: []string{engine}, Listen: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			w := &world{t: t, direct: engine, app: running(t, c)}
			w.proxied = w.app.URL()
			w.ask(w.direct, "PUT", "/x", `{"aliases":{"i50":{}}}`, "Authorization", "Basic YTph")
			var text strings.Builder
			for i := range names {
				_, _ = fmt.Fprintf(&text, "{\"index\":{\"_index\":\"i%d\",\"_id\":\"1\"}}\n{}\n", i)
			}
			var fields []string
			if client != "" {
				fields = []string{"Authorization", client}
			}
			a := w.ask(w.proxied, "POST", "/_bulk", text.String(), fields...)
			if a.Status != want.status || strings.Contains(a.Body, `"errors":true`) {
				t.Errorf("%s, [%s]: %d %s", rule, client, a.Status, a.Body)
			}
			if one := strings.HasSuffix(a.Outcome(), ";guarded=1"); a.Status == 200 && one != (rule == "by another name") {
				t.Errorf("%s, [%s]: %s", rule, client, a.Outcome())
			}
			if n := asked.Load(); n > int64(want.most) {
				t.Errorf("%s, [%s]: the engine was asked %d times, %d of them as optimist", rule, client, n, own.Load())
			}
		}
	}
}

// TestAnItemWhoseIndexCanNotBeAskedAboutGetsWhatASingleWriteGets: the client may send it again.
func TestAnItemWhoseIndexCanNotBeAskedAboutGetsWhatASingleWriteGets(t *testing.T) {
	for status, want := range map[int]int64{429: 429, 503: 503, 500: 502} {
		engine := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
			if asks := r.URL.Path == "/busy"; !asks {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = fmt.Fprintf(rw, `{"error":{"type":"x"},"status":%d}`, status)
			return true
		})
		w := newWorldOn(t, "rules: [{name: r, match: {index: [shop]}}]", Identity{}, engine)
		one := w.ask(w.proxied, "PUT", "/busy/_doc/1", `{}`)
		a := w.ask(w.proxied, "POST", "/_bulk", `{"index":{"_index":"busy","_id":"1"}}`+"\n{}\n")
		if item := gjson.Get(a.Body, "items.0.index"); one.Status != int(want) || item.Get("status").Int() != want ||
			item.Get("error.type").Str != gjson.Get(one.Body, "error.type").Str {
			t.Errorf("%d: %d %s, and as an item: %s", status, one.Status, one.Body, a.Body)
		}
	}
}
