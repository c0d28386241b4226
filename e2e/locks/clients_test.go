package locks_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
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
			changes: [][]string{{"ttl=30", "ttl=3"}, {": # the work", "sleep 4"}}},
	} {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(s.needs); err != nil {
				t.Skipf("%s isn't installed", s.needs)
			}
			c.t = t
			token := s.keepsItsLock(t, language, c)
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

// write writes the manual's program in that language to a folder of its own, with its changes.
func (s *snippet) write(t *testing.T, language string) (dir string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/locks-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the page has no program in %s", language)
	}
	text := string(block[1])
	for _, change := range s.changes {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q isn't there once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// keepsItsLock runs the program, and waits for its lock meanwhile.
func (s *snippet) keepsItsLock(t *testing.T, language string, c client) (token int64) {
	dir := s.write(t, language)
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

// shellJob starts the manual's job in bash with a lease of 3 s. It returns when the work has begun, with what the job still prints and the
// token of its lock.
func shellJob(t *testing.T, work string, c client) (cmd *exec.Cmd, output *bufio.Reader, token int64) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl isn't installed")
	}
	s := snippet{file: "job.sh", changes: [][]string{{"ttl=30", "ttl=3"}, {": # the work", "echo at work; " + work}}}
	cmd = exec.Command("bash", "job.sh", c.url)
	cmd.Dir = s.write(t, "bash")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output = bufio.NewReader(out)
	if _, err := fmt.Fscanf(output, "token %d\nat work\n", &token); err != nil {
		t.Fatal(err)
	}
	return cmd, output, token
}

// The renewing was a process of its own, which went on for as long as the machine ran.
func TestTheManualsShellJobRenewsNothingAfterItWasKilled(t *testing.T) {
	p := optimist.Start(t, optimist.Options{})
	c := client{t, p.URL}
	cmd, _, token := shellJob(t, "sleep 5", c)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	next := c.do(201, "", "PUT", "/_lock/global/nightly", `{"owner":"next","wait":"8s"}`)
	if next.Token <= token || p.Metric(t, "optimist_leases_lapsed_total") != 1 {
		t.Errorf("token %d after %d: the lease didn't lapse", next.Token, token)
	}
	_ = cmd.Wait() // it was killed
}

// Only the shell was ended: the program that it waited for went on, without the lock.
func TestTheManualsShellJobEndsItsWorkWhenItsLeaseIsLost(t *testing.T) {
	p := optimist.Start(t, optimist.Options{})
	c := client{t, p.URL}
	cmd, output, token := shellJob(t, "sleep 20 & sleep 20; echo the work went on", c)
	c.release("/_lock/global/nightly", "bash", token)
	if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 { // up to the end of all who may write
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the job ended with %v", err)
	}
}
