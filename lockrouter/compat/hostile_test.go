package compat_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"optimist/lockrouter/compat"
)

// TestWhatIsNestedWithoutEndIsRefused: checked by recursion, a body of 4 MiB would end the process.
func TestWhatIsNestedWithoutEndIsRefused(t *testing.T) {
	read(t, func(b *book) {
		deep := strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)
		b.ask("a", "PUT /fs/lock/1/_create", deep, 400, "parse_exception")
		b.ask("a", "POST /fs/lock/1/_update", deep, 400, "parse_exception")
		b.ask("a", "GET /fs/lock/_search", deep, 400, "parse_exception")
		b.ask("a", "PUT /fs/lock/_bulk", deep+"\n{}\n", 400, "parse_exception")
		b.ask("a", "GET /fs/lock/_mget", deep, 400, "parse_exception")
		for _, line := range []string{"POST /_bulk", "POST /_search/scroll"} {
			if got := b.as("a", line, deep+"\n\"fs\"\n"); got != nil {
				t.Errorf("%s: %s", line, got)
			}
		}
		if testing.Short() {
			return
		}
		method, op := parsed("POST /_bulk")
		body := append(bytes.Repeat([]byte("["), 4<<20-2), "fs"...)
		if _, err := b.c.Serve(context.Background(), &compat.Request{Method: method, Op: op, Body: body, Session: "a"}); err != nil {
			t.Error(err)
		}
	})
}

// TestAnEmptyProcessIsNotEveryProcess: a variable that was empty must not delete all locks of the session.
func TestAnEmptyProcessIsNotEveryProcess(t *testing.T) {
	read(t, func(b *book) {
		b.ask("a", "POST /fs/lock/1/_update", printed, 201, "created")
		b.ask("a", "PUT /fs/lock/global/_create", "{}", 201, "created")
		for _, body := range []string{`{"query":{"term":{"process_id":""}}}`, `{"query":{"match":{"process_id":{"query":""}}}}`, `{"query":{"bool":{}}}`} {
			b.ask("a", "DELETE /fs/lock/_query", body, 400, illegal)
			b.ask("a", "GET /fs/lock/_search", body, 400, illegal)
		}
		b.ask("a", "POST /fs/_delete_by_query?q=process_id:", "", 400, illegal)
		b.ask("a", "POST /fs/_delete_by_query?q=process_id:a%zz", "", 400, illegal)
		if n := b.locks.Held(); n != 2 {
			t.Errorf("%d held", n)
		}
		if got := b.ask("a", "DELETE /fs/lock/_query", `{"query":{"match_all":{}}}`, 200, ""); got.Get("deleted").Int() != 2 {
			t.Error(got)
		}
	})
}

// TestAGuardThatIsntKnownIsNoGuard: what says under which revision it may be done must not be done under any.
func TestAGuardThatIsntKnownIsNoGuard(t *testing.T) {
	read(t, func(b *book) {
		b.ask("a", "PUT /fs/lock/1/_create", "{}", 201, "created")
		b.ask("a", "DELETE /fs/lock/1?version=7", "", 400, illegal)
		b.ask("a", "DELETE /fs/lock/1?version=7&version_type=external", "", 400, illegal)
		for _, action := range []string{
			`{"delete":{"_id":"1","if_seq_no":"x"}}`, `{"delete":{"_id":"1","if_seq_no":0}}`, `{"delete":{"_id":"1","version":7}}`,
			`{"delete":{"_id":"1","_version":7}}`, "{\"create\":{\"_id\":\"2\",\"if_seq_no\":7}}\n{}",
		} {
			if got := b.ask("a", "POST /fs/lock/_bulk", action+"\n", 200, ""); !got.Get("errors").Bool() {
				t.Errorf("%s: %s", action, got)
			}
		}
		if n := b.locks.Held(); n != 1 {
			t.Errorf("%d held", n)
		}
	})
}

// TestAnIndexIsKnownHoweverItIsWritten: JSON can write a letter in two ways, and the engine reads both.
func TestAnIndexIsKnownHoweverItIsWritten(t *testing.T) {
	read(t, func(b *book) {
		b.ask("a", "POST /_bulk", `{"create":{"_index":"\u0066s","_id":"1"}}`+"\n{}\n", 400, illegal)
		b.ask("a", "POST /fs/lock/_mget", `{"docs":[{"_index":"shop","_id":"1"}]}`, 400, illegal)
	})
}

// TestIDsThatTheEngineDoesntTakeAreRefused, one by one as in a bulk request.
func TestIDsThatTheEngineDoesntTakeAreRefused(t *testing.T) {
	read(t, func(b *book) {
		long := strings.Repeat("x", 513)
		b.ask("a", "PUT /fs/lock/"+long+"/_create", "{}", 400, illegal)
		b.ask("a", "DELETE /fs/lock/"+long, "", 400, illegal)
		b.ask("a", "PUT /fs/lock/%ff/_create", "{}", 400, illegal)
		b.ask("a", "PUT /fs/lock/"+long[:512]+"/_create", "{}", 201, "created")
	})
}
