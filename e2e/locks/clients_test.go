package locks_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/e2e/optimist"
)

// snippet is a program of the manual.
type snippet struct {
	file    string
	needs   string     // a program, without which it can't be run
	changes [][]string // so that its lease is short, and its work longer than that
	build   []string
	run     []string
}

// TestTheManualsProgramsKeepTheirLocks runs the programs of docs/locks-clients.md: each has the lock for longer than its lease, by renewing
// it, and gives it back.
func TestTheManualsProgramsKeepTheirLocks(t *testing.T) {
	page, err := os.ReadFile("../../docs/locks-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	p := optimist.Start(t, optimist.Options{})
	c := client{t, p.URL}
	last := int64(0)
	for language, s := range map[string]snippet{
		"go": {file: "main.go", needs: "go", build: []string{"go", "build", "-o", "program", "main.go"}, run: []string{"./program"},
			changes: [][]string{{"30 * time.Second", "900 * time.Millisecond"}, {"// the work", "<-time.After(2 * time.Second)"}}},
		"python": {file: "locked.py", needs: "python3", run: []string{"python3", "locked.py"},
			changes: [][]string{{"TTL = 30.0", "TTL = 0.9"}, {"# the work", "time.sleep(2)"}}},
		"java": {file: "Locked.java", needs: "javac", build: []string{"javac", "-Xlint:all", "-Werror", "Locked.java"},
			run:     []string{"java", "-cp", ".", "Locked"},
			changes: [][]string{{"Duration.ofSeconds(30)", "Duration.ofMillis(900)"}, {"// the work", "Thread.sleep(2000);"}}},
		"bash": {file: "job.sh", needs: "curl", run: []string{"bash", "job.sh"},
			changes: [][]string{{"ttl=30", "ttl=3"}, {"# the work", "sleep 4"}}},
	} {
		block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if block == nil {
			t.Fatalf("the page has no program in %s", language)
		}
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(s.needs); err != nil {
				t.Skipf("%s isn't installed", s.needs)
			}
			c.t = t
			token := s.keepsItsLock(t, string(block[1]), c)
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
		})
	}
	if n := p.Metric(t, "optimist_leases_lapsed_total"); n != 0 {
		t.Errorf("%g leases have lapsed", n)
	}
}

// keepsItsLock runs the program, and waits for its lock meanwhile.
func (s *snippet) keepsItsLock(t *testing.T, text string, c client) (token int64) {
	for _, change := range s.changes {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q isn't there once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if len(s.build) > 0 {
		cmd := exec.CommandContext(ctx, s.build[0], s.build[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", s.build, err, out)
		}
	}
	cmd := exec.CommandContext(ctx, s.run[0], append(s.run[1:len(s.run):len(s.run)], c.url)...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const path = "/_lock/global/nightly"
	for {
		r, err := c.try(ctx, "GET", path, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if r.status == 200 {
			break
		}
	}
	next := c.do(201, "", "PUT", path, `{"owner":"next","wait":"1m"}`)
	err := cmd.Wait()
	m := regexp.MustCompile(`^token (\d+)\n$`).FindStringSubmatch(out.String())
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	token, _ = strconv.ParseInt(m[1], 10, 64)
	if next.Token <= token || next.Waited < 1500 {
		t.Errorf("token %d after %d, after a wait of %d ms: the lease wasn't renewed", next.Token, token, next.Waited)
	}
	c.release(path, "next", next.Token)
	return token
}
