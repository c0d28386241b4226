package app

import "testing"

// TestAWriteWhoseAnswerHidesItsNumbersEndsWhatWasWrittenBefore: the next write would be counted from what the client wrote before it, and
// all that the one in between has changed would count a second time.
func TestAWriteWhoseAnswerHidesItsNumbersEndsWhatWasWrittenBefore(t *testing.T) {
	const (
		path  = "/shop/_doc/1"
		rules = "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n"
	)
	type step struct{ method, target, body string }
	for name, before := range map[string][]step{
		"a delete, seen": {{"PUT", path, `{"n":1}`}, {"DELETE", path, ""}, {"GET", path, ""}},
		"a write, read":  {{"PUT", path, `{"n":1}`}, {"GET", path, ""}},
		"a write":        {{"PUT", path, `{"n":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules, Identity{})
			for _, s := range append(before, step{"PUT", path + "?filter_path=took", `{"n":5,"gone":1}`}, step{"PUT", path, `{"n":6}`}) {
				w.ask(w.proxied, s.method, s.target, s.body, "Optimist-Session", "a")
			}
			if got, want := w.stored(path), `{"n":6}`; got != want {
				t.Errorf("stored is %s, want %s", got, want)
			}
		})
	}
}
