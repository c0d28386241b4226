package es_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/es"
)

// The engine's reason names the user that optimist is, and the privileges that it lacks.
func TestClientsDoNotSeeWhatTheEngineSaysToOptimist(t *testing.T) {
	log, down := new(bytes.Buffer), errors.New("the journal is away")
	x := es.OwnIndex{Name: "optimist-undo", Err: down, Errors: es.OwnErrors{Log: slog.New(slog.NewTextHandler(log, nil))}}
	for body, want := range map[string]string{
		`{"error":{"type":"security_exception","reason":"no permissions for [User [name=proxy7]]"}}`: " security_exception",
		`<html>proxy7</html>`: "",
	} {
		err := x.Failure(es.Answer{Status: http.StatusForbidden, Body: []byte(body)})
		if !errors.Is(err, down) || err.Error() != "the journal is away: the engine answered 403"+want {
			t.Errorf("the client gets: %v", err)
		}
	}
	if !strings.Contains(log.String(), "proxy7") || !strings.Contains(log.String(), "optimist-undo") {
		t.Errorf("the log has: %s", log)
	}
}

// The log tells of answers seldom. Operators need the one 403 more than the next of a thousand 429.
func TestTheLogTellsOfEachStatus(t *testing.T) {
	log := new(bytes.Buffer)
	e := es.OwnErrors{Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, status := range []int{429, 429, 403, 429, 403, 0, -1, 1000} {
		e.Note("optimist-undo", es.Answer{Status: status, Body: []byte("why")})
	}
	for want, n := range map[string]int{"429 why": 1, "403 why": 1, "\n": 3} {
		if strings.Count(log.String(), want) != n {
			t.Errorf("the log has %q not %d times: %s", want, n, log)
		}
	}
}
