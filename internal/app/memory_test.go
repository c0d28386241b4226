package app

import (
	"testing"

	"optimist/internal/config"
)

func TestTheMemoryOfRequests(t *testing.T) {
	const mebi = 1 << 20
	for text, want := range map[string]map[int64]int64{ // by the memory that there is
		"":                                 {512 * mebi: 128 * mebi, 2048 * mebi: 256 * mebi, 1 << 40: 4 << 30},
		"limits: {max_guarded_body: 1MiB}": {16 * mebi: 8 * mebi, 2048 * mebi: 256 * mebi},
		"limits: {memory: 200MiB}":         {16 * mebi: 200 * mebi, 1 << 40: 200 * mebi},
		"limits: {memory: 8MiB, max_guarded_body: 1MB}": {1 << 40: 8 * mebi},
	} {
		l := parsed(t, text).Limits
		for there, memory := range want {
			if got := l.MemoryOr(there); got != memory {
				t.Errorf("%q with %d MiB: %d MiB, want %d MiB", text, there/mebi, got/mebi, memory/mebi)
			}
		}
	}
	if _, err := config.Parse("test.yaml", []byte("limits: {memory: 127MiB}"), config.Overrides{Upstream: []string{"http://127.0.0.1:1"}}); err == nil {
		t.Error("so little memory that a body as large as it may be has no place is no mistake")
	}
}
