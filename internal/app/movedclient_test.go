package app

import "testing"

// TestARevisionReadElsewhereIsNotWhatWasSent: a client of a named session changes a document by a PATCH, reads the result through another
// optimist, and names it in If-Match. This optimist knows of that revision only what the client had in hand when it sent the PATCH, without
// what others had written before. As a change of that, everything the others had written would count a second time.
func TestARevisionReadElsewhereIsNotWhatWasSent(t *testing.T) {
	const (
		path  = "/shop/_doc/1"
		rules = "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n"
	)
	session := []string{"Optimist-Session", "a"}
	for name, c := range map[string]struct {
		meanwhile string // "": nobody writes
		status    int
		want      string
	}{
		"nobody writes in between":   {"", 200, `{"n":3,"tags":["other","mine"]}`},
		"somebody writes in between": {`{"n":7,"tags":["other"]}`, 409, `{"n":7,"tags":["other"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules, Identity{})
			w.put(path, `{"n":0,"tags":[]}`)
			w.ask(w.proxied, "GET", path, "", session...)
			w.put(path, `{"n":1,"tags":["other"]}`)
			a := w.ask(w.proxied, "POST", "/shop/_patch/1", `[{"op":"increment","path":"/n","value":1}]`,
				append([]string{"Content-Type", "application/vnd.optimist-patch+json"}, session...)...)
			if got, want := w.stored(path), `{"n":2,"tags":["other"]}`; a.Status != 200 || got != want {
				t.Fatalf("%d %s: stored is %s", a.Status, a.Body, got)
			}
			if c.meanwhile != "" {
				w.put(path, c.meanwhile)
			}
			a = w.ask(w.proxied, "PUT", path, `{"n":3,"tags":["other","mine"]}`, append([]string{"If-Match", `"2-1"`}, session...)...)
			if got := w.stored(path); a.Status != c.status || got != c.want {
				t.Errorf("%d [%s]: stored is %s, want %d and %s", a.Status, a.Outcome(), got, c.status, c.want)
			}
		})
	}
}
