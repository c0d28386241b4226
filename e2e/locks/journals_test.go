package locks_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// command runs the built program against the admin listener of the second proxy.
func (r *renaming) command(args ...string) (out string, ok bool) {
	r.t.Helper()
	binary, err := optimist.Binary(false)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := exec.CommandContext(r.t.Context(), binary, append(args, "--admin", strings.TrimPrefix(r.b.Admin, "http://"))...).CombinedOutput()
	return string(text), err == nil
}

// TestOperatorsSeeAJournalUntilItsHolderIsDeadAndItsWritesAreUndone through another proxy than the holder's, which dies, too.
func TestOperatorsSeeAJournalUntilItsHolderIsDeadAndItsWritesAreUndone(t *testing.T) {
	engine.EachAtOnce(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		r := newRenaming(t, e, 8)
		r.fill()
		lock := "/" + r.index + "/_lock/tree/old"
		if out, ok := r.command("undo", "show", lock); ok || !strings.Contains(out, "there is no journal of "+lock) {
			t.Error(out)
		}
		a := enginetest.Ask(t, "PUT", r.a.URL+lock+"?undo=true&owner=holder&ttl=1h", "")
		if a.Status != 201 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		token := gjson.Get(a.Body, "token").Raw
		if r.rename(token, func(i int) bool { return i == 4 }) {
			t.Fatal("it was to end after 4 files")
		}
		r.see("open", lock, "holder", "open")
		r.seeWrites(lock)
		r.renewLast(scopes[0], a.Body)
		r.a.Kill() // the holder dies with its proxy
		r.see("lapsed, or undone already", lock, "holder", "lapsed", "being_undone", "")
		r.see("undone by the sweep", lock, "holder", "")
		if renamed, old := r.renamed(); renamed != 0 || old != r.files {
			t.Errorf("%d are renamed and %d as they were, of %d", renamed, old, r.files)
		}
		if out, ok := r.command("undo", "show", lock); ok {
			t.Error(out)
		}
	})
}

// seeWrites wants the writes of the first four files, as rename makes them, and no documents.
func (r *renaming) seeWrites(lock string) {
	r.t.Helper()
	out, ok := r.command("undo", "show", lock)
	if !ok || strings.Contains(out, "/new/") || strings.Contains(out, "/old/") {
		r.t.Error(out)
	}
	for _, want := range []string{"old-0 update", "old-1 update", "new-2 create", "old-2 delete", "new-3 create", "old-3 delete"} {
		id, operation, _ := strings.Cut(want, " ")
		found := false
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			found = found || len(f) == 6 && f[1] == r.index && f[2] == id && f[3] == operation && (f[5] == "applied" || f[5] == "noted")
		}
		if !found {
			r.t.Errorf("%s isn't there:\n%s", want, out)
		}
	}
	out, ok = r.command("undo", "show", "--documents", lock)
	if !ok || !strings.Contains(out, fmt.Sprintf(`"before":"{ \"path\":\"/old/%d\",`, 0)) {
		r.t.Error(out)
	}
}

// see waits until the journal of a lock is listed in one of the states; "" is not at all.
func (r *renaming) see(what, lock, owner string, states ...string) {
	r.t.Helper()
	var out string
	look := time.NewTicker(200 * time.Millisecond) // each look is a program of its own, which others' time goes into
	defer look.Stop()
	for until := time.Now().Add(60 * time.Second); time.Now().Before(until); <-look.C {
		var ok bool
		if out, ok = r.command("undo", "ls", "--json", "--owner", owner, "--prefix", lock); !ok {
			r.t.Fatal(out)
		}
		for _, state := range states {
			if gjson.Get(out, "state").Str == state {
				return
			}
		}
	}
	r.t.Errorf("%s: the list is %s", what, out)
}
