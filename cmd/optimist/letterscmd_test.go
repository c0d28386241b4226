package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/internal/deadletter"
)

// A row of a list says in which zone its time is. The object of a list is what the server sent.
func TestAListOfDeadLettersHasTimesWithAZone(t *testing.T) {
	l := &deadletter.Letter{ID: "0a", At: time.Date(2026, 11, 25, 23, 22, 25, 0, time.FixedZone("", 3600)), Rule: "shop", Reason: "conflict",
		Request: deadletter.Request{Method: "PUT", Target: "/shop/_doc/1"}, State: deadletter.Waiting}
	entry, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	for asJSON, want := range map[bool]string{
		false: "0a\t2026-11-25T22:22:25Z\twaiting\tconflict\tshop\tPUT /shop/_doc/1\t\n",
		true:  string(entry) + "\n",
	} {
		var out bytes.Buffer
		list := listing{asJSON: asJSON, row: letterRow}
		if err := list.entry(&out, &out, entry, 1); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOfTwoCommandsThatReplayAllNoneSaysThatLettersAreLeft: the other command replays one at the same time, and another is gone already.
func TestOfTwoCommandsThatReplayAllNoneSaysThatLettersAreLeft(t *testing.T) {
	for again, want := range map[string]int{deadletter.Missing: exitOK, deadletter.Replayed: exitOK, deadletter.Busy: exitFailed} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == lettersPath+"/_replay" {
				_, _ = io.WriteString(w, `{"results":[{"id":"0a","result":"busy"},{"id":"0b","result":"missing"}]}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"id":"0a","result":%q}`, again)
		}))
		var out, stderr bytes.Buffer
		args := []string{"dead-letters", "replay", "--all", "--admin", strings.TrimPrefix(s.URL, "http://")}
		if status := run(t.Context(), args, &out, &stderr); status != want {
			t.Errorf("%s: %d, %s%s", again, status, &out, &stderr)
		}
		s.Close()
	}
}

// TestAStoreThatIsAwayIsNoEndOfAllLetters: what the folder has is done, and the command says that there may be more.
func TestAStoreThatIsAwayIsNoEndOfAllLetters(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"after":"0a"`) {
			_, _ = io.WriteString(w, `{"results":[],"away":"it can't be reached"}`)
			return
		}
		_, _ = io.WriteString(w, `{"results":[{"id":"0a","result":"replayed"}],"next":"0a"}`)
	}))
	defer s.Close()
	var out, stderr bytes.Buffer
	args := []string{"dead-letters", "replay", "--all", "--admin", strings.TrimPrefix(s.URL, "http://")}
	if status := run(t.Context(), args, &out, &stderr); status != exitFailed || out.String() != "replayed 1\n" ||
		!strings.Contains(stderr.String(), "it can't be reached") {
		t.Errorf("%d: %s%s", status, &out, &stderr)
	}
}

// TestOneLetterThatIsGoneKeepsNoOtherFromBeingDeleted: nor does one that somebody replays. A store that is away ends the command.
func TestOneLetterThatIsGoneKeepsNoOtherFromBeingDeleted(t *testing.T) {
	kinds := map[string]string{"0b": "404 dead_letter_not_found", "0c": "409 dead_letter_taken", "0e": "503 dead_letter_store_unavailable"}
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, lettersPath+"/")
		asked = append(asked, id)
		if kind := kinds[id]; kind != "" {
			status, kind, _ := strings.Cut(kind, " ")
			code, _ := strconv.Atoi(status)
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"error":{"type":%q,"reason":"so it is"},"status":%s}`, kind, status)
			return
		}
		_, _ = fmt.Fprintf(w, `{"deleted":%q}`, id)
	}))
	defer s.Close()
	for ids, want := range map[string]string{
		"0a 0b 0c 0d": "0b: missing: so it is\n0c: busy: so it is\nbusy 1, deleted 2, missing 1\n",
		"0a 0e 0d":    "",
	} {
		asked = nil
		var out, stderr bytes.Buffer
		args := append([]string{"dead-letters", "delete", "--admin", strings.TrimPrefix(s.URL, "http://")}, strings.Fields(ids)...)
		status := run(t.Context(), args, &out, &stderr)
		all := strings.Join(asked, " ") == ids
		if status != exitFailed || out.String() != want || all != (want != "") {
			t.Errorf("%s: %d, asked for %q: %s%s", ids, status, asked, &out, &stderr)
		}
	}
}
