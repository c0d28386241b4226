package main

import (
	"errors"
	"strings"
	"testing"
)

var errFull = errors.New("no space left on device")

// full is an output that takes so many bytes.
type full struct{ room int }

func (f *full) Write(text []byte) (n int, err error) {
	if n = min(f.room, len(text)); n < len(text) {
		err = errFull
	}
	f.room -= n
	return n, err
}

// TestAnOutputThatIsCutOffIsNoSuccess: as in optimist suggest > rules.yaml on a disk without room.
func TestAnOutputThatIsCutOffIsNoSuccess(t *testing.T) {
	s := serveFor(t, "", "mode: guard")
	admin := []string{"--admin", s.admin}
	for name, args := range map[string][]string{
		"suggest": append([]string{"suggest"}, admin...),
		"hot":     append([]string{"hot"}, admin...),
		"mode":    append([]string{"mode"}, admin...),
		"locks":   append([]string{"locks", "ls"}, admin...),
		"version": {"version"},
		"check":   {"check", writeFile(t, "optimist.yaml", "rules: []\n")},
		"explain": {"explain", "PUT", "/shop/_doc/1", "--body", "{}"},
		"demo":    {"demo", "--once", "--workers", "2", "--rounds", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			var errs strings.Builder
			status := run(t.Context(), args, &full{room: 3}, &errs)
			if status != exitFailed || errs.String() != "optimist: no space left on device\n" {
				t.Errorf("status %d, %s", status, &errs)
			}
		})
	}
}
