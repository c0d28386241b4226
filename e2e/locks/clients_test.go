package locks_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// snippet is a program of the manual.
type snippet struct {
	file  string
	needs string // a program, without which it can't be run
	build []string
	run   []string

	lease   [2]string // what makes its lease short
	longish [2]string // what makes it somewhat longer: a third of it is enough for an answer
	work    string    // what stands for its work
	longer  string    // work that takes longer than that lease
	waiting string    // work that goes on until the program's standard input ends
}

func snippets() map[string]snippet {
	return map[string]snippet{
		"go": {file: "main.go", needs: "go", build: []string{"go", "build", "-o", "program", "main.go"}, run: []string{"./program"},
			lease: [2]string{"30 * time.Second", "900 * time.Millisecond"}, longish: [2]string{"30 * time.Second", "9 * time.Second"}, work: "// the work",
			longer: "<-time.After(2 * time.Second)", waiting: "_, _ = os.Stdin.Read(make([]byte, 1))"},
		"python": {file: "locked.py", needs: "python3", run: []string{"python3", "locked.py"},
			lease: [2]string{"TTL = 30.0", "TTL = 0.9"}, longish: [2]string{"TTL = 30.0", "TTL = 9.0"}, work: "# the work", longer: "time.sleep(2)", waiting: "sys.stdin.read()"},
		"java": {file: "Locked.java", needs: "javac", build: []string{"javac", "-Xlint:all", "-Werror", "Locked.java"},
			run: []string{"java", "-cp", ".", "Locked"}, lease: [2]string{"Duration.ofSeconds(30)", "Duration.ofMillis(900)"}, longish: [2]string{"Duration.ofSeconds(30)", "Duration.ofSeconds(9)"},
			work: "// the work", longer: "Thread.sleep(2000);", waiting: "System.in.read();"},
		"bash": {file: "job.sh", needs: "curl", run: []string{"bash", "job.sh"},
			lease: [2]string{"ttl=30", "ttl=6"}, longish: [2]string{"ttl=30", "ttl=9"}, work: ": # the work", longer: "sleep 7", waiting: "cat"},
	}
}

const nightly = "/_lock/global/nightly"

// TestTheManualsProgramsKeepTheirLocks runs the programs of docs/locks-clients.md: each has the lock for longer than its lease, by renewing
// it, and gives it back.
func TestTheManualsProgramsKeepTheirLocks(t *testing.T) {
	p := optimist.Start(t, optimist.Options{})
	c := client{t, p.URL}
	last := int64(0)
	for language, s := range snippets() {
		t.Run(language, func(t *testing.T) {
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

// Their owner was a constant: the second copy re-entered the lock of the first, and the first to end released it for both.
func TestTheManualsProgramsExcludeTheirOwnCopies(t *testing.T) {
	for language, s := range snippets() {
		t.Run(language, func(t *testing.T) {
			p := optimist.Start(t, optimist.Options{})
			s.excludesItsCopy(t, language, client{t, p.URL})
		})
	}
}

// TestTheManualsProgramsTryAgainToRenew: one proxy behind a balancer is stopped, or its answer breaks off, or isn't optimist's, or comes byte by
// byte. The release hangs, too.
func TestTheManualsProgramsTryAgainToRenew(t *testing.T) {
	for language, s := range snippets() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			var renewals atomic.Int32
			renewed, over := make(chan struct{}), make(chan struct{})
			balancer := engine.Between(t, optimist.Start(t, optimist.Options{}).URL, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				const none, hangs, breaksOff, page, trickles = 0, 1, 3, 5, 7
				n := int32(none)
				if r.Method == http.MethodDelete {
					n = hangs
				} else if r.URL.Query().Has("renew") {
					n = renewals.Add(1)
				}
				switch n {
				case hangs:
					select {
					case <-over:
					case <-r.Context().Done():
					}
				case breaksOff:
					w.Header().Set("Content-Length", "200")
					_, _ = io.WriteString(w, `{"lock":"`)
				case page:
					_, _ = io.WriteString(w, "<html></html>")
				case trickles:
					trickle(w, r, over)
				default:
					pass.ServeHTTP(w, r)
				}
				if n == trickles+1 {
					close(renewed)
				}
			})
			t.Cleanup(func() { close(over) })
			p := s.start(t, s.write(t, language, s.longish, [2]string{s.work, s.waiting}), client{t, balancer})
			if token := <-p.token; token == 0 {
				t.Fatal("it has no lock")
			}
			select {
			case <-renewed:
			case <-time.After(time.Minute):
				t.Errorf("it has renewed its lease %d times", renewals.Load())
			}
			p.end(t)
		})
	}
}

// trickle answers with a byte every half second, until the client leaves or it is over.
func trickle(w http.ResponseWriter, r *http.Request, over <-chan struct{}) {
	every := time.NewTicker(time.Second / 2)
	defer every.Stop()
	for {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-every.C:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// write writes the manual's program in that language to a folder of its own, with its changes: what to replace, and with what.
func (s *snippet) write(t *testing.T, language string, changes ...[2]string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath(s.needs); err != nil {
		t.Skipf("%s isn't installed", s.needs)
	}
	page, err := os.ReadFile("../../docs/locks-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the page has no program in %s", language)
	}
	text := string(block[1])
	for _, change := range changes {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q isn't there once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(s.build) > 0 {
		cmd := exec.CommandContext(t.Context(), s.build[0], s.build[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", s.build, err, out)
		}
	}
	return dir
}

// command runs the program that was written to dir, for two minutes at most.
func (s *snippet) command(t *testing.T, dir string, c client) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, s.run[0], append(s.run[1:len(s.run):len(s.run)], c.url)...)
	cmd.Dir = dir
	return cmd
}

// keepsItsLock runs the program, and waits for its lock meanwhile.
func (s *snippet) keepsItsLock(t *testing.T, language string, c client) (token int64) {
	cmd := s.command(t, s.write(t, language, s.lease, [2]string{s.work, s.longer}), c)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := c.try(t.Context(), "GET", nightly, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if r.status == 200 {
			break
		}
	}
	next := c.do(201, "", "PUT", nightly, `{"owner":"next","wait":"1m"}`)
	err := cmd.Wait()
	m := regexp.MustCompile(`^token (\d+)\n$`).FindStringSubmatch(out.String())
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	token, _ = strconv.ParseInt(m[1], 10, 64)
	if next.Token <= token || next.Waited < 1500 {
		t.Errorf("token %d after %d, after a wait of %d ms: the lease wasn't renewed", next.Token, token, next.Waited)
	}
	c.release(nightly, "next", next.Token)
	return token
}

// excludesItsCopy runs two copies of the program. The first works until the second waits for the lock.
func (s *snippet) excludesItsCopy(t *testing.T, language string, c client) {
	dir := s.write(t, language, [2]string{s.work, s.waiting})
	first := s.start(t, dir, c)
	held := <-first.token
	second := s.start(t, dir, c)
	for c.do(200, "", "GET", nightly, "").Waiting == 0 {
		select {
		case token := <-second.token:
			t.Fatalf("the second copy works with the token %d, the first with %d", token, held)
		default:
		}
	}
	first.end(t)
	if token := <-second.token; token <= held {
		t.Errorf("token %d after %d", token, held)
	}
	c.do(200, "", "GET", nightly, "") // the first released its own lease alone
	second.end(t)
	c.do(404, "lock_not_found", "GET", nightly, "")
}

// copied is a copy of a program that works until its standard input ends.
type copied struct {
	cmd   *exec.Cmd
	input io.Closer
	token chan int64 // of its lock; 0: it ended without one
}

func (s *snippet) start(t *testing.T, dir string, c client) *copied {
	t.Helper()
	p := &copied{cmd: s.command(t, dir, c), token: make(chan int64, 1)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.input, p.cmd.Stderr = in, os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		var token int64
		_, _ = fmt.Fscanf(out, "token %d\n", &token)
		p.token <- token
	}()
	return p
}

// end ends its work.
func (p *copied) end(t *testing.T) {
	t.Helper()
	_ = p.input.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// shellJob starts the manual's job in bash with a lease of 9 s. It returns when the work has begun, with what the job still prints and the
// token of its lock.
func shellJob(t *testing.T, work string, c client) (cmd *exec.Cmd, output *bufio.Reader, token int64) {
	t.Helper()
	s := snippets()["bash"]
	cmd = s.command(t, s.write(t, "bash", s.longish, [2]string{s.work, "echo at work; " + work}), c)
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
	next := c.do(201, "", "PUT", nightly, `{"owner":"next","wait":"30s"}`)
	if next.Token <= token || p.Metric(t, "optimist_leases_lapsed_total") != 1 {
		t.Errorf("token %d after %d: the lease didn't lapse", next.Token, token)
	}
	_ = cmd.Wait() // it was killed
}

// Nobody was left that could end the work: it went on without the lock, while the next owner worked.
func TestTheManualsShellJobEndsItsWorkAlsoWhenItIsKilledOrStopped(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			renewing := make(chan struct{}, 100)
			balancer := engine.Between(t, optimist.Start(t, optimist.Options{}).URL, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				if r.URL.Query().Has("renew") {
					renewing <- struct{}{}
				}
				pass.ServeHTTP(w, r)
			})
			output := filepath.Join(t.TempDir(), "output") // of the work alone
			if err := syscall.Mkfifo(output, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd, _, _ := shellJob(t, "exec >'"+output+"'; sleep 100 & sleep 100; echo the work went on", client{t, balancer})
			<-renewing
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if rest, err := os.ReadFile(output); err != nil || len(rest) > 0 { // up to the end of all who may write
				t.Errorf("%q, %v", rest, err)
			}
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = cmd.Wait() // it was killed, or its work was
		})
	}
}

// Only the shell was ended: the program that it waited for went on, without the lock.
func TestTheManualsShellJobEndsItsWorkWhenItsLeaseIsLost(t *testing.T) {
	p := optimist.Start(t, optimist.Options{})
	c := client{t, p.URL}
	cmd, output, token := shellJob(t, "sleep 20 & sleep 20; echo the work went on", c)
	c.release(nightly, c.do(200, "", "GET", nightly, "").Owner, token)
	if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 { // up to the end of all who may write
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the job ended with %v", err)
	}
}
