package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"optimist": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestCommandLine runs the scripts: what is printed where, and the exit status, as users and their scripts see them. $DATA and $ADMIN are
// the addresses of an optimist that runs, on an engine in memory.
func TestCommandLine(t *testing.T) {
	runScripts(t, serveFor(t, "", ""), "testdata/script")
}

// TestUndoCommands runs the scripts about journals, on an optimist whose locks can have undo. Nobody else takes locks there.
func TestUndoCommands(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "undo")
	if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	runScripts(t, serveFor(t, "", "undo: {auth: {basic_file: '"+secret+"'}, grace: 200ms}\n"), "testdata/undo")
}

func runScripts(t *testing.T, r *running, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Setenv("DATA", r.data)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a command that ends has nobody left to race with, and would wait for a second
			env.Setenv("ADMIN", r.admin)
			return nil
		},
		Dir:                 dir,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "send": sends, "fight": fights, "hold": holds},
	})
}

// status runs a command and holds its exit status to a number: status 2 optimist serve.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARGUMENT...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; want != string(rune('0'+got)) {
		ts.Fatalf("exit status %d, want %s", got, want)
	}
}

// sends makes a request that has to be carried out: send PUT http://$DATA/_lock/global/a BODY.
func sends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: send METHOD URL BODY")
	}
	req, err := http.NewRequestWithContext(context.Background(), args[0], args[1], strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	body, err := io.ReadAll(res.Body)
	ts.Check(errors.Join(err, res.Body.Close()))
	if res.StatusCode >= 300 {
		ts.Fatalf("%s %s: %s: %s", args[0], args[1], res.Status, body)
	}
	_, _ = ts.Stdout().Write(body)
}

// holds acquires a lock with undo, and makes a write under it: hold ADDRESS LOCK?owner=NAME METHOD PATH BODY.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: hold ADDRESS LOCK?owner=NAME METHOD PATH BODY")
	}
	ask := func(method, path, body, token string) []byte {
		req, err := http.NewRequestWithContext(context.Background(), method, "http://"+args[0]+path, strings.NewReader(body))
		ts.Check(err)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Optimist-Lock-Token", token)
		}
		res, err := http.DefaultClient.Do(req)
		ts.Check(err)
		answer, err := io.ReadAll(res.Body)
		if ts.Check(errors.Join(err, res.Body.Close())); res.StatusCode >= 300 {
			ts.Fatalf("%s %s: %s: %s", method, path, res.Status, answer)
		}
		return answer
	}
	var lease struct{ Token json.Number }
	ts.Check(json.Unmarshal(ask(http.MethodPut, args[1]+"&undo=true&ttl=10m", "", ""), &lease))
	ask(args[2], args[3], args[4], lease.Token.String())
}

// fights has two sessions read a document, and both write it: fight $DATA /index/_doc/1 BASE ONE OTHER, which are files.
func fights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: fight ADDRESS PATH BASE ONE OTHER")
	}
	ask := func(method, session string, body string) {
		req, err := http.NewRequestWithContext(context.Background(), method, "http://"+args[0]+args[1], strings.NewReader(body))
		ts.Check(err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Optimist-Session", session)
		res, err := http.DefaultClient.Do(req)
		ts.Check(err)
		_, err = io.Copy(io.Discard, res.Body)
		if ts.Check(errors.Join(err, res.Body.Close())); res.StatusCode >= 300 {
			ts.Fatalf("%s: %s", method, res.Status)
		}
	}
	ask("PUT", "third", ts.ReadFile(args[2]))
	ask("GET", "one", "")
	ask("GET", "other", "")
	ask("PUT", "one", ts.ReadFile(args[3]))
	ask("PUT", "other", ts.ReadFile(args[4]))
}

// TestCheckNamesWhatARuleDoesUnlikeOthers: the summary was silent about it.
func TestCheckNamesWhatARuleDoesUnlikeOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "optimist.yaml")
	rules := "rules:\n- {name: a, match: {index: [a]}, locks: enforce, on_exhausted: dead_letter, transform: [{op: now, path: /at}]}\n" +
		"- {name: b, match: {index: [b]}, bulk: refuse, update: engine, write_id: _writes, on_missing: recreate, rerun: true, " +
		"priority: background, base: {unknown: reject, lost: reject, ambiguous: fail}}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, _ := invoke(t, "check", file)
	for _, want := range []string{"merges: sent; then 1 step; 423 if another client holds its lock; a dead letter if it can't be placed",
		"merges: sent; _updates are merged by the engine; items of a _bulk are refused; makes documents anew that were deleted since; " +
			"_update_by_query runs again after conflicts; leaves marks in _writes; 428 without a base; 409 if the base was lost; " +
			"409 if the base is ambiguous; other writes go first"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %s", out, want)
		}
	}
}
