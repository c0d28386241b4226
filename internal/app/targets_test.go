package app

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"optimist/internal/intercept"

	"github.com/tidwall/gjson"
)

// asIs is ask with a request target whose bytes are sent as they are.
func (w *world) asIs(base, method, target, body, session string) answer {
	w.t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.do(method, &url.URL{Scheme: u.Scheme, Host: u.Host, Opaque: target}, body, "Optimist-Session", session)
}

func (w *world) do(method string, u *url.URL, body string, fields ...string) answer {
	w.t.Helper()
	var r io.Reader
	if body != "" {
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequest(method, "http://"+u.Host, r)
	if err != nil {
		w.t.Fatal(err)
	}
	req.URL = u
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, u, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{Status: res.StatusCode, Body: string(b), Header: res.Header}
}

// TestOddTargetsAreThoseOfTheEngine has documents named as engines take it and nobody should write it: both changes are kept, and
// the document is the one that the engine takes it for.
func TestOddTargetsAreThoseOfTheEngine(t *testing.T) {
	for name, c := range map[string]struct{ target, stored string }{
		"slashes at the end":         {"/shop/_doc/1//", "/shop/_source/1"},
		"two percent signs":          {"/shop/_doc/50%%", "/shop/_source/50%25"},
		"UTF-8 that isn't encoded":   {"/shop/_doc/ü", "/shop/_source/%C3%83%C2%BC"},
		"UTF-8 half of it encoded":   {"/shop/_doc/%C3\xbc", "/shop/_source/%C3%BC"},
		"Latin-1":                    {"/shop/_doc/\xfc", "/shop/_source/%C3%BC"},
		"routing that isn't encoded": {"/shop/_doc/1?routing=ü", "/shop/_source/1?routing=%C3%83%C2%BC"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", Identity{})
			w.asIs(w.direct, "PUT", c.target, `{"a":1,"b":1}`, "")
			w.put("/shop/_doc/%C3%BC%20", `{"other":1}`)
			for _, session := range []string{"s", "t"} {
				if a := w.asIs(w.proxied, "GET", c.target, "", session); a.Status != 200 {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
			}
			w.wants(w.asIs(w.proxied, "PUT", c.target, `{"a":2,"b":1}`, "s"), 200, "guarded;attempts=1;base=session")
			w.wants(w.asIs(w.proxied, "PUT", c.target, `{"a":1,"b":2}`, "t"), 200, "merged;attempts=2;base=session")
			if got := w.ask(w.direct, "GET", c.stored, "").Body; got != `{"a":2,"b":2}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// TestAWriteWithAFragmentIsPassedAndSaid has number signs in targets. Engines heed nothing behind them, a guard neither: a write
// with one must not be told as guarded.
func TestAWriteWithAFragmentIsPassedAndSaid(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	for _, target := range []string{doc1 + "?refresh=true#x", doc1 + "#x", doc1 + "#x?refresh=true"} {
		if a := w.asIs(w.proxied, "GET", target, "", "s"); a.Status != 200 || a.Header.Get("ETag") != "" {
			t.Errorf("GET %s: %d %v", target, a.Status, a.Header)
		}
		w.wants(w.asIs(w.proxied, "PUT", target, `{"a":2}`, "s"), 200, "passed;attempts=1;base=none;reason=fragment")
		w.wants(w.asIs(w.proxied, "DELETE", target, "", "s"), 200, "passed;attempts=1;base=none;reason=fragment")
		w.wants(w.asIs(w.proxied, "PUT", strings.Replace(target, "_doc", "_create", 1), `{"a":1}`, "s"), 201, "passed;attempts=1;base=none;reason=fragment")
	}
}

// TestADryRunOfATargetWithAFragmentSaysWhyNothingIsRead has one, which isn't the credentials' fault.
func TestADryRunOfATargetWithAFragmentSaysWhyNothingIsRead(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	u := &url.URL{Scheme: "http", Host: strings.TrimPrefix(w.proxied, "http://"), Opaque: doc1 + "#x"}
	a := w.do(http.MethodPut, u, `{"a":2}`, intercept.DryRunField, "true")
	note := gjson.Get(a.Body, "notes.0").String()
	if a.Status != 200 || gjson.Get(a.Body, "outcome.reason").String() != "fragment" || !strings.Contains(note, "a number sign") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if got := w.stored(doc1); got != `{"a":1}` {
		t.Errorf("stored %s", got)
	}
}
