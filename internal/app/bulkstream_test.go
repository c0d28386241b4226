package app

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// tinyBody is up to how many bytes of a body are held where bulks are to go in windows.
const tinyBody = 1 << 10

// numbered is a bulk of so many items, which are more than one window.
func numbered(items int) string {
	var b strings.Builder
	for n := range items {
		fmt.Fprintf(&b, `{"index":{"_id":"%d"}}`+"\n"+`{"n":%d}`+"\n", n, n)
	}
	return b.String()
}

// TestABulkThatComesInWindowsHasOneAnswer whatever its coding, and also where it is to show less.
func TestABulkThatComesInWindowsHasOneAnswer(t *testing.T) {
	w := newSizedWorldOn(t, "", Identity{}, enginetest.Serve(t), tinyBody)
	text := numbered(500)
	for name, send := range map[string]func() answer{
		"plain": func() answer { return w.ask(w.proxied, "POST", "/shop/_bulk", text) },
		"gzipped": func() answer {
			return w.ask(w.proxied, "POST", "/shop/_bulk", zipped(text), "Content-Encoding", "gzip")
		},
		"filtered": func() answer {
			return w.ask(w.proxied, "POST", "/shop/_bulk?filter_path=errors,items.*.status,items.*.result", text)
		},
	} {
		a := send()
		w.wants(a, 200, "passed;items=500;passed=500")
		if n := strings.Count(told(a), "ed"); n != 500 || !gjson.Valid(a.Body) || gjson.Get(a.Body, "errors").Raw != "false" {
			t.Errorf("%s: %.300s", name, a.Body)
		}
		w.holds("/shop/_doc/499", `{"n":499}`)
	}
	if a := w.ask(w.proxied, "POST", "/shop/_bulk?filter_path=items.*.error", text); a.Body != "{}" {
		t.Errorf("%.300s", a.Body)
	}
}

// TestABulkThatBreaksBehindAWindowSaysHowFarItCame: what is written can't be taken back, and nobody may take it for the whole.
func TestABulkThatBreaksBehindAWindowSaysHowFarItCame(t *testing.T) {
	w := newSizedWorldOn(t, "", Identity{}, enginetest.Serve(t), tinyBody)
	const action = `{"index":{"_id":"501"}}`
	for last, why := range map[string]string{
		"{}\n":              "",
		action + "\n":       "",
		action:              ": the bulk has to end with a newline",
		action + "\n{\"a\"": ": the bulk has to end with a newline",
	} {
		a := w.ask(w.proxied, "POST", "/shop/_bulk", numbered(500)+last)
		if a.Status != 400 || !strings.Contains(a.Body, "item 501 of the bulk can't be read"+why+"; the 500 before it were carried out") ||
			!strings.HasPrefix(a.Outcome(), "passed;items=500;") {
			t.Errorf("%q: %d %s [%s]", last, a.Status, a.Body, a.Outcome())
		}
	}
	if a := w.ask(w.proxied, "POST", "/other/_bulk", "{}\n"+numbered(500)); a.Status != 400 || !strings.Contains(a.Outcome(), "reason=format") {
		t.Errorf("%d %s [%s]", a.Status, a.Body, a.Outcome())
	}
	w.holds("/other/_doc/1", "")
}

// TestACompressedBulkThatIsDamagedSaysHowFarItCame, whatever the damage is. Engines read what follows as another member, and so does optimist.
func TestACompressedBulkThatIsDamagedSaysHowFarItCame(t *testing.T) {
	w := newSizedWorldOn(t, "", Identity{}, enginetest.Serve(t), tinyBody)
	var text strings.Builder
	random := rand.NewChaCha8([32]byte{})
	for n := range 500 {
		fmt.Fprintf(&text, `{"index":{"_id":"%d"}}`+"\n"+`{"n":"%x"}`+"\n", n, random.Uint64())
	}
	large := fmt.Sprintf(`{"index":{"_id":"large"}}`+"\n"+`{"n":"%0300000d"}`+"\n", 0)
	whole, behind := zipped(text.String()), zipped(text.String()+large)
	n := len(whole)
	for name, body := range map[string]string{
		"broken off": whole[:n*2/3], "without its trailer": whole[:n-8], "of half its trailer": whole[:n-4],
		"another sum": whole[:n-8] + "\x00\x00\x00\x00" + whole[n-4:], "another length": whole[:n-4] + "\x00\x00\x00\x00",
		"another text": whole[:n*2/3] + strings.Repeat("\xff", 100) + whole[n*2/3+100:], "broken off in a large item": behind[:len(behind)-100],
		"many bytes behind it": whole + strings.Repeat("junk", 1000), "ten zeros behind it": whole + strings.Repeat("\x00", 10),
		"a member that breaks off": whole + whole[:n/2],
	} {
		a := w.ask(w.proxied, "POST", "/shop/_bulk", body, "Content-Encoding", "gzip")
		reason, items := gjson.Get(a.Body, "error.reason").Str, 0
		at := strings.Index(reason, "; the first ")
		if at > 0 {
			_, _ = fmt.Sscanf(reason[at:], "; the first %d items of the bulk were carried out, and nothing behind them", &items)
		}
		if a.Status != 400 || !strings.HasPrefix(reason, "the body isn't the gzip data that its Content-Encoding says: ") || items == 0 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		w.wants(a, 400, fmt.Sprintf("passed;items=%d;", items))
	}
	for _, body := range []string{whole[:9], "\x1f\x8b" + strings.Repeat("x", 2*tinyBody), whole[:20] + strings.Repeat("\xff", 2*tinyBody)} {
		a := w.ask(w.proxied, "POST", "/shop/_bulk", body, "Content-Encoding", "gzip")
		if a.Status != 400 || strings.Contains(a.Body, "carried out") || !strings.Contains(a.Body, "isn't the gzip data") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	w.wants(w.ask(w.proxied, "POST", "/shop/_bulk", whole+zipped(numbered(100)), "Content-Encoding", "gzip"), 200, "passed;items=600;passed=600")
	for _, few := range []string{"\n", "junkjunk", "\x00\x00", whole[:9]} { // engines wait for the rest of a member's head, and ignore them
		w.wants(w.ask(w.proxied, "POST", "/shop/_bulk", whole+few, "Content-Encoding", "gzip"), 200, "passed;items=500;passed=500")
	}
}

// TestABulkWithoutItemsIsTheEngines however long it is: nobody else knows whether its client may write.
func TestABulkWithoutItemsIsTheEngines(t *testing.T) {
	const refusal = `{"error":"of the engine"}`
	var asked atomic.Int64
	front := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			return false
		}
		n, _ := io.Copy(io.Discard, r.Body)
		asked.Store(n)
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, refusal)
		return true
	})
	w := newSizedWorldOn(t, "", Identity{}, front, tinyBody)
	members := strings.Repeat(zipped(""), 100)
	for _, line := range []string{"\n", "\r\n", " \n"} {
		for _, n := range []int{1, 300, 500, 1000, 5000, 1 << 20} {
			text := strings.Repeat(line, n)
			for coding, body := range map[string]string{"identity": text, "gzip": zipped(text), "x-gzip": members + zipped(text)} {
				asked.Store(-1)
				a := w.ask(w.proxied, "POST", "/shop/_bulk", body, "Content-Encoding", coding)
				if a.Status != 401 || a.Body != refusal || asked.Load() != int64(len(body)) {
					t.Errorf("%d times %q, %s: %d %.100s; the engine got %d of %d bytes", n, line, coding, a.Status, a.Body, asked.Load(), len(body))
				}
			}
		}
	}
}

// TestEmptyLinesOfABulkTakeNoMemory before its items, between them and behind them. Where there are too many of them for a guard, the engine
// gets the bulk as it is, or the client is told how far it came.
func TestEmptyLinesOfABulkTakeNoMemory(t *testing.T) {
	const size, bound, engines = 64 << 10, 64 << 20, "longer than 104857600 bytes"
	w := newSizedWorldOn(t, "", Identity{}, enginetest.Serve(t), size)
	few, many := strings.Repeat("\n", size-100), bomb(t, "", strings.Repeat("\n", 1<<20), 100, "")
	some := zipped(few + numbered(300) + few + numbered(200) + few)
	w.wants(w.ask(w.proxied, "POST", "/shop/_bulk", some, "Content-Encoding", "gzip"), 200, "passed;items=500;passed=500")
	for name, c := range map[string]struct {
		body, reason string
		status       int
	}{
		"before":  {many + zipped(numbered(500)), engines, 413},
		"alone":   {many, engines, 413},
		"between": {zipped(numbered(500)) + many + zipped(numbered(1)), "item 501 of the bulk can't be read; the 500 before it were carried out", 400},
		"behind":  {zipped(numbered(500)) + many, "item 501 of the bulk can't be read; the 500 before it were carried out", 400},
	} {
		var a answer
		took := allocated(func() {
			a = w.ask(w.proxied, "POST", "/shop/_bulk?filter_path=error", c.body, "Content-Encoding", "gzip")
		})
		if a.Status != c.status || !strings.Contains(a.Body, c.reason) || c.reason != engines && took > bound {
			t.Errorf("%s: %d %.300s [%s], %d KiB", name, a.Status, a.Body, a.Outcome(), took>>10)
		}
	}
}

// TestABulkWhoseAnswerFindsNoDiskSaysHowFarItCame: the items that were sent are counted, and those behind them are not written. The log has
// the folder's path, the client has not.
func TestABulkWhoseAnswerFindsNoDiskSaysHowFarItCame(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "nothing")
	t.Setenv("TMPDIR", folder)
	engine := enginetest.Serve(t)
	c := configured(t, "", engine)
	c.Limits.MaxGuardedBody, c.Sessions.Infer = tinyBody, config.InferNone
	log := &enginetest.Log{}
	w := &world{t: t, direct: engine, app: runningWith(t, Options{Config: c, Log: slog.New(slog.NewTextHandler(log, nil))})}
	w.proxied = w.app.URL()
	if !log.Contains("the temporary folder (TMPDIR) can't be used") || !log.Contains(folder) {
		t.Errorf("the log of the start doesn't say that the folder can't be used:\n%s", log)
	}
	a := w.ask(w.proxied, "POST", "/shop/_bulk", numbered(9000))
	var done int
	reason := gjson.Get(a.Body, "error.reason").Str
	if _, err := fmt.Sscanf(reason, "the first %d items of the bulk were carried out, and nothing behind them", &done); err != nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if gjson.Get(a.Body, "error.type").Str != "answer_not_kept" || !strings.Contains(reason, "temporary folder") || done == 0 || done >= 9000 {
		t.Error(a.Body)
	}
	if strings.Contains(a.Body, folder) || !strings.Contains(log.String(), folder) {
		t.Errorf("the client is told\n%s\nand the log\n%s", a.Body, log)
	}
	w.wants(a, 507, fmt.Sprintf("passed;items=%d;passed=%[1]d", done))
	w.holds(fmt.Sprintf("/shop/_doc/%d", done-1), fmt.Sprintf(`{"n":%d}`, done-1))
	w.holds(fmt.Sprintf("/shop/_doc/%d", done), "")
}

// TestAnItemThatIsTooLargePassesByItself in its place, unless its rule refuses items of bulks.
func TestAnItemThatIsTooLargePassesByItself(t *testing.T) {
	w := newSizedWorldOn(t, "rules:\n- {name: no, match: {index: [accounts]}, bulk: refuse}\n- {name: r, match: {index: [shop]}}\n", Identity{},
		enginetest.Serve(t), tinyBody)
	large := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 300<<10))
	text := lines(`{"index":{"_id":"1"}}`, `{"a":1}`, `{"index":{"_id":"1"}}`, large, `{"index":{"_index":"accounts","_id":"1"}}`, large,
		`{"update":{"_id":"1"}}`, `{"doc":{"a":2}}`)
	a := w.ask(w.proxied, "POST", "/shop/_bulk", text, "Optimist-Session", "s")
	w.bulked(a, "index 201 created, index 200 updated, index 400 illegal_argument_exception, update 200 updated",
		"refused;items=4;passed=2;retried=1;refused=1;too_large=1")
	w.holds("/shop/_doc/1", large[:len(large)-1]+`,"a":2}`)
	if a := w.ask(w.direct, "GET", "/accounts/_doc/1", ""); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestABulkInWindowsIsRefreshedOnce, or with each window where its client may not refresh an index by itself.
func TestABulkInWindowsIsRefreshedOnce(t *testing.T) {
	for _, c := range []struct {
		refuses      bool
		bulks, alone int64
	}{{false, 1, 2}, {true, 0, 1}} {
		var bulks, of, alone atomic.Int64
		front := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.HasSuffix(r.URL.Path, "/_bulk"):
				of.Add(1)
				if r.URL.Query().Get("refresh") == "true" {
					bulks.Add(1)
				}
			case strings.HasSuffix(r.URL.Path, "/_refresh"):
				alone.Add(1)
				if c.refuses {
					rw.WriteHeader(http.StatusForbidden)
					return true
				}
			}
			return false
		})
		w := newSizedWorldOn(t, "", Identity{}, front, tinyBody)
		w.wants(w.ask(w.proxied, "POST", "/shop/_bulk?refresh=true", numbered(500)), 200, "passed;items=500;")
		if c.refuses {
			c.bulks = of.Load()
		}
		if of.Load() < 3 || bulks.Load() != c.bulks || alone.Load() != c.alone {
			t.Errorf("of %d bulks %d refresh, and %d refreshes; want %d and %d", of.Load(), bulks.Load(), alone.Load(), c.bulks, c.alone)
		}
	}
}
