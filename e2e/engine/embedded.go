package engine

import (
	"testing"

	"optimist/internal/enginetest"
)

// Embedded serves the engine in memory, beside which tests set the real ones, until the test ends, and returns its URL.
func Embedded(t testing.TB) string {
	t.Helper()
	return enginetest.Serve(t)
}
