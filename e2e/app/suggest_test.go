package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// TestWhatIsSuggestedLosesNothing: an application works without rules, guarded or only observed. What optimist suggests then is a
// configuration under which it loses nothing.
func TestWhatIsSuggestedLosesNothing(t *testing.T) {
	shapes := append(app.Shapes(), app.Cart)
	want := map[app.Shape]string{app.Counter: "/stock sum", app.Cart: "/count sum, /updated_at max"}
	eachInferenceTarget(t, func(t *testing.T, e target) {
		for _, mode := range []string{"guard", "observe"} {
			t.Run(mode, func(t *testing.T) {
				index := map[app.Shape]string{}
				work := func(p *optimist.Process, shape app.Shape, id string, sessions app.Sessions) *app.Application {
					return &app.Application{URLs: []string{p.URL}, Store: e.url, Path: "/" + index[shape] + "/_doc/" + id, Shape: shape, Workers: 16,
						Rounds: rounds(16), Sessions: sessions}
				}
				p := optimistFor(t, e, "", "--mode", mode)
				for _, shape := range shapes {
					index[shape] = e.index(t)
				}
				learn := func(id string) {
					for _, shape := range shapes {
						if r, err := work(p, shape, id, app.Unnamed).Run(t.Context()); err != nil || r.Acknowledged == 0 {
							t.Fatal(err, &r)
						}
					}
				}
				learn("before")
				rules, file := suggested(t, p)
				// Without rules the bases of a counter are guesses. If many of the first ones are wrong, optimist needs more to learn from.
				for n := 0; n < 3 && suggestedFor(rules, index[app.Counter]) == ""; n++ {
					learn(fmt.Sprint("before-", n))
					rules, file = suggested(t, p)
				}
				for _, shape := range shapes {
					if got := suggestedFor(rules, index[shape]); got != want[shape] {
						t.Errorf("%s: %q is suggested, want %q\n%s", shape, got, want[shape], rules)
					}
				}
				command(t, "check", "--strict", file)
				p = optimistFor(t, e, rules)
				for _, shape := range shapes {
					for _, sessions := range []app.Sessions{app.Named, app.Unnamed} {
						r, _ := run(t, work(p, shape, fmt.Sprint("after-", sessionsName(sessions)), sessions))
						flawless(t, &r)
					}
				}
				if again, _ := suggested(t, p); strings.Contains(again, "\nrules:") || !strings.Contains(again, "says sum already") {
					t.Errorf("under the rules something is suggested:\n%s", again)
				}
			})
		}
	})
}

// suggested is what `optimist suggest` prints, and a file of it.
func suggested(t *testing.T, p *optimist.Process) (rules, file string) {
	t.Helper()
	rules = command(t, "suggest", "--admin", strings.TrimPrefix(p.Admin, "http://"))
	file = filepath.Join(t.TempDir(), "suggested.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return rules, file
}

// command runs the program, which has to succeed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := optimist.Binary(false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("optimist %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// suggestedLine is a path with its strategy.
var suggestedLine = regexp.MustCompile(`(?m)^        (/\S+): (\w+)$`)

// suggestedFor is what the rule for an index says, as in "/n sum, /at max".
func suggestedFor(rules, index string) string {
	_, rule, _ := strings.Cut(rules, "- name: "+index+"\n")
	rule, _, _ = strings.Cut(rule, "- name: ")
	var list []string
	for _, m := range suggestedLine.FindAllStringSubmatch(rule, -1) {
		list = append(list, m[1]+" "+m[2])
	}
	return strings.Join(list, ", ")
}
