package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"optimist/internal/deadletter"
)

// A row of a list says in which zone its time is, and an object of a list has no bodies.
func TestAListOfDeadLettersHasTimesWithAZoneAndNoBodies(t *testing.T) {
	l := &deadletter.Letter{ID: "0a", At: time.Date(2026, 11, 25, 23, 22, 25, 0, time.FixedZone("", 3600)), Rule: "shop", Reason: "conflict",
		Request: deadletter.Request{Method: "PUT", Target: "/shop/_doc/1"}, State: deadletter.Waiting}
	var out bytes.Buffer
	for _, list := range []*lettersList{{}, {JSON: true}} {
		if err := list.write(&out, &out, l, 1); err != nil {
			t.Fatal(err)
		}
	}
	row, object, _ := strings.Cut(out.String(), "\n")
	if want := "0a\t2026-11-25T22:22:25Z\twaiting\tconflict\tshop\tPUT /shop/_doc/1\t"; row != want {
		t.Errorf("%q, want %q", row, want)
	}
	var fields struct{ Request map[string]any }
	if err := json.Unmarshal([]byte(object), &fields); err != nil || len(fields.Request) != 2 {
		t.Errorf("%s, %v", object, err)
	}
}
