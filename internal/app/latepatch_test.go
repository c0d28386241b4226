package app

import (
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestAReadMadeDuringAPatchDoesNotShowIt: the client of a named session has given its PATCH up, and reads the document before the PATCH is
// carried out. What it writes next was made without the PATCH, and must not undo it.
func TestAReadMadeDuringAPatchDoesNotShowIt(t *testing.T) {
	const path = "/shop/_doc/1"
	arrived, goOn := make(chan struct{}), make(chan struct{})
	direct := enginetest.Serve(t)
	between := enginetest.Between(t, direct, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.RawQuery, "timeout=59s") && r.Method != http.MethodGet {
			close(arrived)
			<-goOn
		}
		return false
	})
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}}\n", Identity{}, between)
	session := []string{"Optimist-Session", "a"}
	w.ask(direct, "PUT", path, `{"tags":[]}`)
	done := make(chan answer)
	go func() {
		done <- w.ask(w.proxied, "POST", "/shop/_patch/1?timeout=59s", `[{"op":"append","path":"/tags","value":"patch"}]`,
			append([]string{"Content-Type", "application/vnd.optimist-patch+json"}, session...)...)
	}()
	<-arrived
	w.ask(w.proxied, "GET", path, "", session...)
	close(goOn)
	if a := <-done; a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a := w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"tags":["part"]}}`, session...)
	if got, want := w.stored(path), `{"tags":["patch","part"]}`; got != want {
		t.Errorf("%d [%s]: stored is %s, want %s", a.Status, a.Outcome(), got, want)
	}
}
