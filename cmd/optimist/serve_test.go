package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// running is an optimist in this process.
type running struct {
	log     *enginetest.Log
	file    string
	data    string
	admin   string
	signals chan os.Signal
	ended   chan error
}

// serveFor starts a service with a file of that content; %s in it is upstream.
func serveFor(t *testing.T, upstream, content string) *running {
	t.Helper()
	r := &running{log: new(enginetest.Log), file: filepath.Join(t.TempDir(), "optimist.yaml"), signals: make(chan os.Signal, 4), ended: make(chan error, 1)}
	r.write(t, cmp.Or(content, "{}"))
	cmd := serveCmd{settings: settings{r.file, config.Overrides{Listen: "127.0.0.1:0", Admin: new("127.0.0.1:0"), LogLevel: "info"}}, Embedded: upstream == ""}
	if upstream != "" {
		cmd.Upstream = []string{upstream}
	}
	s, err := cmd.prepare(r.log)
	if err != nil {
		t.Fatal(err)
	}
	s.deaf = func() {}
	go func() { r.ended <- s.untilEnd(t.Context(), r.signals) }()
	r.data = r.log.Wait(t, `msg=serving addr=(\S+)`)
	r.admin = r.log.Wait(t, `msg=serving addr=\S+ admin=(\S+)`)
	t.Cleanup(func() {
		select {
		case r.signals <- os.Interrupt:
		default:
		}
	})
	return r
}

// write replaces the configuration file as an editor does: by renaming another one.
func (r *running) write(t *testing.T, content string) {
	t.Helper()
	next := r.file + ".next"
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.file); err != nil {
		t.Fatal(err)
	}
}

// get asks the admin listener.
func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	a := enginetest.Ask(t, "GET", "http://"+r.admin+path, "")
	return a.Status, a.Body
}

// ask makes a request of the data port; fields are name, value, name, value.
func (r *running) ask(t *testing.T, method, path, body string, fields ...string) enginetest.Answer {
	t.Helper()
	return enginetest.Ask(t, method, "http://"+r.data+path, body, fields...)
}

// end waits for the end and returns the exit status.
func (r *running) end(t *testing.T) int {
	t.Helper()
	select {
	case err := <-r.ended:
		if err == nil {
			return exitOK
		}
		if exit, ok := err.(*exitError); ok {
			return exit.status
		}
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatalf("it doesn't end:\n%s", r.log)
	}
	return -1
}

// slowEngine answers requests for /slow when it is let to, and says when one has come.
func slowEngine(t *testing.T) (url string, arrived <-chan struct{}, release func()) {
	came, gate := make(chan struct{}, 8), make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	url = enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/slow" {
			return false
		}
		came <- struct{}{}
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "{}")
		return true
	})
	t.Cleanup(release)
	return url, came, release
}

// ask sends a request for /slow and gives its answer.
func ask(t *testing.T, addr string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		a := enginetest.Try(t, "GET", "http://"+addr+"/slow", "")
		answer <- fmt.Sprint(a.Status, " ", a.Body, a.Err)
	}()
	return answer
}

func TestAChangedFileIsReadAgain(t *testing.T) {
	r := serveFor(t, "", "mode: guard\n")
	r.write(t, "mode: observe\nlog: {level: debug}\nrules: [{name: a}, {name: b, match: {index: [x]}}]\nlimits: {idle_timeout: 7s}\n")
	r.log.Wait(t, "configuration reloaded.*rules=2 mode=observe")
	r.log.Wait(t, `keys that need a restart" keys=\[limits.idle_timeout\]`)
	r.log.Wait(t, "rule b is never reached")
	_, body := r.get(t, "/_optimist/config")
	if strings.Contains(body, `"memory": "0B"`) {
		t.Errorf("the memory in force isn't shown: %s", body)
	}
	for _, want := range []string{`"mode": "observe"`, `"name": "b"`, `"idle_timeout": "2m"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the configuration in force lacks %s:\n%s", want, body)
		}
	}
	r.write(t, "mode: gaurd\nrules: [{}]\n")
	r.log.Wait(t, `1:7: mode: .*did you mean`)
	r.log.Wait(t, `2:9: rules\[0\]: a rule needs a name`)
	if _, after := r.get(t, "/_optimist/config"); after != body {
		t.Errorf("a file with mistakes has changed something:\n%s", after)
	}
	if _, metrics := r.get(t, "/metrics"); !strings.Contains(metrics, `optimist_config_reloads_total{result="failure"} 1`) {
		t.Error("the failure isn't counted")
	}
}

// TestAFileBehindALinkIsReadAgain: whether what the link stands for is changed, or the link is turned, or a link on the way.
func TestAFileBehindALinkIsReadAgain(t *testing.T) {
	r := serveFor(t, "", "mode: guard\n")
	put := func(name, content string) string {
		t.Helper()
		file := filepath.Join(filepath.Dir(r.file), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	turn := func(link, to string) {
		t.Helper()
		if err := os.Symlink(to, link+".next"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".next", link); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(filepath.Dir(r.file), "current")
	put("1/optimist.yaml", "rules: [{name: a}, {name: b}]\n")
	turn(current, "1")
	turn(r.file, "current/optimist.yaml")
	r.log.Wait(t, "configuration reloaded.*rules=2")
	put("1/optimist.yaml", "rules: [{name: a}, {name: b}, {name: c}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=3")
	put("2/optimist.yaml", "rules: [{name: a}, {name: b}, {name: c}, {name: d}]\n")
	turn(current, "2")
	r.log.Wait(t, "configuration reloaded.*rules=4")
	put("2/optimist.yaml", "rules: [{name: a}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=1")
	elsewhere := put("3/x/optimist.yaml", "rules: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]\n")
	turn(r.file, elsewhere)
	r.log.Wait(t, "configuration reloaded.*rules=5")
	put("3/x/optimist.yaml", "rules: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=6")
	put("srv/r1/optimist.yaml", "rules: [{name: a}, {name: b}]\n")
	released := filepath.Join(filepath.Dir(r.file), "srv", "current")
	turn(released, "r1")
	turn(r.file, filepath.Join(released, "optimist.yaml"))
	r.log.Wait(t, "(?s)rules=6.*configuration reloaded.*rules=2")
	put("srv/r2/optimist.yaml", "rules: [{name: a}, {name: b}, {name: c}]\n")
	turn(released, "r2")
	r.log.Wait(t, "(?s)rules=6.*configuration reloaded.*rules=3")
}

// TestAHalfWrittenFileTakesNoRulesAway: who empties the file, or writes it bit by bit, has switched no rule off.
func TestAHalfWrittenFileTakesNoRulesAway(t *testing.T) {
	r := serveFor(t, "", "rules: [{name: shop, match: {index: [shop]}, locks: enforce}, {name: rest}]\n")
	for half, want := range map[string]string{
		"":               "optimist.yaml:1:1: nothing stands in this file: it is empty, or half written",
		"# rules: ...\n": "optimist.yaml:1:1: nothing stands in this file",
		"{}\n":           "optimist.yaml: rules: the file has none, and these are in force: shop, rest; if all of them shall go, write rules: ",
		"version: 1\n":   "optimist.yaml: rules: the file has none, and these are in force: shop, rest",
		"rules:\n":       "optimist.yaml:1:1: rules: the file has none, and these are in force: shop, rest",
	} {
		before := strings.Count(r.log.String(), "reload refused")
		r.write(t, half)
		r.log.Wait(t, fmt.Sprintf("(?s)(reload refused.*){%d}%s", before+1, regexp.QuoteMeta(want)))
		if _, body := r.get(t, "/_optimist/config"); !strings.Contains(body, `"locks": "enforce"`) {
			t.Errorf("the file %q has taken the rules away", half)
		}
	}
	if _, metrics := r.get(t, "/metrics"); !strings.Contains(metrics, "optimist_config_last_reload_successful 0") {
		t.Error("the metric says that all is well")
	}
	r.write(t, "rules: [{name: rest}]\n")
	r.log.Wait(t, `level=WARN msg="rules are gone with this reload" rules=\[shop\]`)
	r.write(t, "rules: []\n")
	r.log.Wait(t, `level=WARN msg="rules are gone with this reload" rules=\[rest\]`)
	r.log.Wait(t, "configuration reloaded.*rules=1")
}

// TestAFileThatIsGoneIsTold: optimist goes on with what it has read, and another start would fail.
func TestAFileThatIsGoneIsTold(t *testing.T) {
	r := serveFor(t, "", "mode: observe\n")
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.log.Wait(t, "reload refused: nothing has changed.*the file changed")
	r.log.Wait(t, "the configuration can't be read: .*no such file")
	if _, metrics := r.get(t, "/metrics"); !strings.Contains(metrics, "optimist_config_last_reload_successful 0") {
		t.Error("the metric says that all is well")
	}
	r.write(t, "mode: observe\n")
	r.log.Wait(t, "configuration reloaded.*mode=observe")
}

// TestChangedRuleFilesAreReadAgain: those that are there, those that come, in folders that come, too, and those that go.
func TestChangedRuleFilesAreReadAgain(t *testing.T) {
	r := serveFor(t, "", "rules: [{name: rest}]\n")
	put := func(name, content string) {
		t.Helper()
		next := filepath.Join(filepath.Dir(r.file), name)
		if err := os.MkdirAll(filepath.Dir(next), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(next+".next", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next+".next", next); err != nil {
			t.Fatal(err)
		}
	}
	r.write(t, "rule_files: ['teams/*/rules.yaml']\nrules: [{name: rest}]\n")
	r.log.Wait(t, "reload refused")
	r.log.Wait(t, "there is no such file: .*teams")
	put("teams/a/rules.yaml", "rules: [{name: a, match: {index: [a]}}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=2")
	put("teams/b/rules.yaml", "rules: [{name: b, match: {index: [b]}}, {name: b2, match: {index: [b2]}}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=4")
	put("teams/b/rules.yaml", "rules: [{name: b, match: {index: ['*']}}]\n")
	r.log.Wait(t, "reload refused")
	r.log.Wait(t, `teams/b/rules.yaml:1:35: rules\[0\].match.index\[0\]: .*claimed twice: rule a takes .*teams/a/rules.yaml:1:35`)
	if err := os.RemoveAll(filepath.Join(filepath.Dir(r.file), "teams/b")); err != nil {
		t.Fatal(err)
	}
	r.log.Wait(t, "(?s)rules=2 .*rules=2 ")
	put("teams/b/rules.yaml", "rules: [{name: b, match: {index: [b]}}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=3")
	teams := filepath.Join(filepath.Dir(r.file), "teams")
	if err := os.Rename(teams, teams+".old"); err != nil { // all at once: of files that go one by one some may be read again
		t.Fatal(err)
	}
	r.log.Wait(t, "(?s)(reload refused.*){3}")
	if _, body := r.get(t, "/_optimist/config"); !strings.Contains(body, `"name": "b"`) {
		t.Error("files that are gone have taken their rules with them")
	}
}

// TestTheModeOfTheFileCountsWhenItChanges: a mode that was set while running survives reloads of other keys.
func TestTheModeOfTheFileCountsWhenItChanges(t *testing.T) {
	r := serveFor(t, "", "mode: guard\n")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"mode", "off", "--admin", r.admin}, &out, io.Discard); code != 0 || out.String() != "mode: off (was guard)\n" {
		t.Fatalf("%d %s", code, out.String())
	}
	r.write(t, "mode: guard\nrules: [{name: a}]\n")
	r.log.Wait(t, "configuration reloaded.*rules=1 mode=off")
	if _, body := r.get(t, "/_optimist/config"); !strings.Contains(body, `"mode": "off"`) {
		t.Errorf("the mode in force is told wrong:\n%s", body)
	}
	r.write(t, "mode: observe\nrules: [{name: a}]\n")
	r.log.Wait(t, "configuration reloaded.*mode=observe")
	out.Reset()
	if run(t.Context(), []string{"mode", "--admin", r.admin}, &out, io.Discard); out.String() != "mode: observe\n" {
		t.Errorf("the mode is told as %s", out.String())
	}
	if _, metrics := r.get(t, "/metrics"); !strings.Contains(metrics, `optimist_mode{mode="observe"} 1`) {
		t.Error("the metric of the mode is wrong")
	}
}

func TestSIGHUPReadsTheFileAgain(t *testing.T) {
	r := serveFor(t, "", "mode: guard\n")
	r.signals <- syscall.SIGHUP
	r.log.Wait(t, "configuration reloaded.*reason=SIGHUP")
}

func TestTheEngineInMemoryAnswersThroughTheDoor(t *testing.T) {
	r := serveFor(t, "", "")
	r.log.Wait(t, "the engine is in memory")
	// Nobody can have read from an engine that has just begun: no base is lost.
	if a := r.ask(t, "PUT", "/shop/_doc/1", `{"stock":1}`); a.Status != 201 || a.Outcome() != "passed;attempts=1;base=none" {
		t.Errorf("a document is answered %d, %s", a.Status, a.Outcome())
	}
	if a := r.ask(t, "PUT", "/_lock/global/reindex", `{"owner":"job-7"}`); a.Status != 200 && a.Status != 201 {
		t.Errorf("a lock is answered %d", a.Status)
	}
	if a := r.ask(t, "PUT", "/shop/_create/2", `{}`, "Idempotency-Key", "k"); a.Status != 201 {
		t.Errorf("a write with a key is answered %d", a.Status)
	}
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "level=WARN") && (strings.Contains(line, "lock") || strings.Contains(line, "template")) {
			t.Errorf("a warning of what the engine in memory lacks: %s", line)
		}
	}
	for metrics := ""; !strings.Contains(metrics, `optimist_requests_total{code="2xx",op="index"} 1`); { // counted after its answer
		_, metrics = r.get(t, "/metrics")
	}
	http.DefaultClient.CloseIdleConnections()
	r.signals <- os.Interrupt
	if status := r.end(t); status != exitOK {
		t.Errorf("status %d", status)
	}
}

func TestNotReadyWithoutAnEngine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	l.Close()
	r := serveFor(t, dead, "")
	r.log.Wait(t, "node left out")
	r.log.Wait(t, "the engine doesn't answer; it will be tried again")
	if a := r.ask(t, "GET", "/", ""); a.Status < 502 {
		t.Fatalf("a dead engine is answered %d %s", a.Status, a.Body)
	}
	status, body := r.get(t, "/_optimist/ready")
	if status != 503 || !strings.Contains(body, "no node of the engine answers") || !strings.Contains(body, "refused") {
		t.Errorf("ready is %d %s", status, body)
	}
}

func TestAPortInUseIsToldByItsKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for flag, want := range map[string]string{"--listen": "the data port can't be opened (listen: ", "--admin": "the admin listener can't be opened (admin: "} {
		args := map[string]string{"--listen": "127.0.0.1:0", "--admin": "127.0.0.1:0"}
		args[flag] = l.Addr().String()
		var stderr bytes.Buffer
		code := run(context.Background(), []string{"serve", "--embedded", "--listen", args["--listen"], "--admin", args["--admin"]}, io.Discard, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "address already in use: another program has it") {
			t.Errorf("%s: %d %s", flag, code, stderr.String())
		}
	}
}

// TestNothingOfASecretIsTold: neither the configuration in force nor the log holds what is in the files.
func TestNothingOfASecretIsTold(t *testing.T) {
	url := enginetest.Serve(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("user:hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serveFor(t, url, "log: {level: debug}\nupstream: {auth: {basic_file: "+key+"}}\n")
	if a := r.ask(t, "GET", "/?filter_path=*.hunter2", "", "Authorization", "Bearer hunter2"); a.Status != 200 {
		t.Fatal(a)
	}
	for _, path := range []string{"/_optimist/config", "/_optimist/health", "/metrics", "/debug/pprof/cmdline"} {
		if _, body := r.get(t, path); strings.Contains(body, "hunter2") || strings.Contains(body, "aHVudGVyMg") {
			t.Errorf("%s tells the secret", path)
		}
	}
	if strings.Contains(r.log.String(), "hunter2") {
		t.Errorf("the log tells the secret:\n%s", r.log)
	}
}

func TestALowLimitOfOpenFilesIsSaid(t *testing.T) {
	c, err := config.Parse("test.yaml", []byte("version: 1\nlimits: {max_connections: 1000}\nupstream: {max_connections: 50}\n"),
		config.Overrides{Upstream: []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	for there, want := range map[uint64]bool{1199: true, 1200: false} {
		var said strings.Builder
		warnOfFiles(c, there, slog.New(slog.NewTextHandler(&said, nil)))
		if got := strings.Contains(said.String(), "needs=1200 there=1199"); got != want {
			t.Errorf("%d: %q", there, said.String())
		}
	}
	if n := openFiles(); n < 10 {
		t.Errorf("this process may have %d files open", n)
	}
}

// A service manager isn't to try again what the system forbids.
func TestWhatTheSystemForbidsIsNoReasonToTryAgain(t *testing.T) {
	for err, want := range map[error]bool{syscall.EROFS: true, syscall.EACCES: true, syscall.EPERM: true, syscall.EADDRINUSE: false, syscall.ENOSPC: false} {
		wrapped := fmt.Errorf("the folder can't be used: %w", &os.PathError{Op: "mkdir", Path: "letters", Err: err})
		if got := forbidden(wrapped); got != want {
			t.Errorf("%v: %t", wrapped, got)
		}
	}
}
