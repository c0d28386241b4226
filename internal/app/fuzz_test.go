package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/internal/enginetest"
)

// fuzzedRules have optimist look at everything that a request may be.
const fuzzedRules = "rules:\n" +
	"- {name: stamped, match: {index: [stamped]}, base: {stamp: _stamp}, merge: {paths: {/n: sum, /l: union}}}\n" +
	"- {name: changed, match: {index: [changed]}, base: {unknown: fetch}, transform: [{op: increment, path: /n, value: 1}, {op: append, path: /l, value: 1, when: 'incoming.a == 1'}]}\n" +
	"- {name: rest, base: {reads: [get, mget, search]}}\n"

// FuzzRequests sends bytes to the data port of an App, with all that it does, in front of an engine in memory. None of them makes it
// panic, keeps it from answering the next client, or takes memory that isn't given back.
func FuzzRequests(f *testing.F) {
	for _, seed := range requestSeeds(f) {
		f.Add([]byte(seed))
	}
	log := &enginetest.Log{}
	c := configured(f, "limits: {memory: 64MiB, max_guarded_body: 1MiB, header_timeout: 1s, body_timeout: 1s}\n"+fuzzedRules, enginetest.Serve(f))
	c.Locks.Path, c.Locks.Index = "/_lock", "optimist-locks"
	a, err := New(Options{Config: c, Rules: compiled(f, c), Settled: true, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(a.Close)
	a.Serve()
	addr := strings.TrimPrefix(a.URL(), "http://")
	f.Fuzz(func(t *testing.T, request []byte) {
		if bytes.Contains(request, []byte("100-continue")) || bytes.Contains(request, []byte("wait")) {
			return // it may wait for as long as it says
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = conn.Write(request)
		_ = conn.(*net.TCPConn).CloseWrite()
		read(t, conn)
		if next := enginetest.Ask(t, "GET", a.URL()+"/", ""); next.Status != http.StatusOK || !json.Valid([]byte(next.Body)) {
			t.Errorf("the next client: %d %s", next.Status, next.Body)
		}
		if log.Contains("panic") {
			t.Fatalf("%q: %s", request, log)
		}
		enginetest.Wait(t, "the memory is given back", func() bool { return a.budget.Used() == 0 })
	})
}

// read reads the answers that there are.
func read(t *testing.T, conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		_, err = io.Copy(io.Discard, res.Body)
		if _ = res.Body.Close(); err != nil {
			break
		}
	}
	if n, _ := io.Copy(io.Discard, r); n > 0 {
		t.Logf("%d bytes are no answer", n) // to a HEAD, say, which the reader here doesn't know of
	}
}

// requestSeeds are requests of all kinds, and the framings that two parsers may read differently.
func requestSeeds(f *testing.F) (list []string) {
	whole := func(method, path, body string, fields ...string) {
		head := method + " " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
		for i := 0; i+1 < len(fields); i += 2 {
			head += fields[i] + ": " + fields[i+1] + "\r\n"
		}
		list = append(list, head+"\r\n"+body)
	}
	media := []string{"Content-Type", "application/json", "Optimist-Session", "s"}
	for _, index := range []string{"stamped", "changed", "i"} {
		whole("PUT", "/"+index+"/_doc/1", `{"n":1,"l":[1,2],"a":1}`, media...)
		whole("GET", "/"+index+"/_doc/1", "", media...)
		whole("PUT", "/"+index+"/_doc/1", `{"n":1.50,"l":[],"a":{"b":null}}`, append(media, "If-Match", `"0-1"`)...)
		whole("POST", "/"+index+"/_update/1", `{"doc":{"n":2},"doc_as_upsert":true}`, media...)
		whole("POST", "/"+index+"/_mget", `{"docs":[{"_id":"1","routing":"r"}],"ids":["2"]}`, media...)
		whole("POST", "/"+index+"/_search?size=2&seq_no_primary_term=true", `{"query":{"match_all":{}}}`, media...)
		whole("PATCH", "/"+index+"/_doc/1", `[{"op":"test","path":"/n","value":1},{"op":"copy","from":"","path":"/a"}]`, "Content-Type", "application/json-patch+json")
		whole("PATCH", "/"+index+"/_doc/1", `{"a":null,"b":{"c":1}}`, "Content-Type", "application/merge-patch+json")
		whole("PATCH", "/"+index+"/_doc/1", `[{"op":"increment","path":"/n","value":1,"when":"current.n > 0"}]`, "Content-Type", "application/vnd.optimist-patch+json")
		whole("POST", "/_bulk", `{"index":{"_index":"`+index+`","_id":"1","if_seq_no":0}}`+"\n{}\n"+`{"delete":{"_index":"`+index+`","_id":"2"}}`+"\n", media...)
		whole("DELETE", "/"+index+"/_doc/1?if_seq_no=1&if_primary_term=1", "", media...)
	}
	whole("PUT", "/i/t/1/_create?routing=%31#x", zipped(`{"a":1}`), "Content-Encoding", "gzip")
	whole("POST", "/i/_delete_by_query?conflicts=proceed", `{"query":{"match_all":{}}}`, media...)
	whole("POST", "/_aliases", `{"actions":[{"add":{"index":"i","alias":"a","routing":"r"}}]}`, media...)
	whole("PUT", "/_lock/global/a?owner=o&ttl=1s", "")
	whole("PUT", "/fs/_lock/tree/a/b", `{"owner":"o","shared":true}`)
	whole("GET", "/_nodes/http", "")
	data, err := os.ReadFile(filepath.Join("..", "..", "proxy", "testdata", "framings.json"))
	if err != nil {
		f.Fatal(err)
	}
	var framings []struct{ Request string }
	if err := json.Unmarshal(data, &framings); err != nil {
		f.Fatal(err)
	}
	for _, x := range framings {
		var b []byte
		for _, r := range x.Request {
			b = append(b, byte(r))
		}
		list = append(list, string(b))
	}
	return list
}
