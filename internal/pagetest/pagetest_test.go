package pagetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"optimist/internal/pagetest"
)

const text = "# Page\n<!-- keys: begin -->\nold\n<!-- keys: end -->\nthe rest\n"

func write(t *testing.T, text string) string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return page
}

// recorder is a test whose failures are looked at.
type recorder struct {
	testing.TB
	failures []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record returns what f reports.
func record(t *testing.T, f func(t testing.TB)) []string {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failures
}

func TestAPartIsComparedAndWrittenAlone(t *testing.T) {
	page := write(t, text)
	if got := pagetest.Part(t, page, "keys"); got != "old\n" {
		t.Errorf("%q", got)
	}
	pagetest.Golden(t, page, "keys", "old\n", false)
	if len(record(t, func(t testing.TB) { pagetest.Golden(t, page, "keys", "new\n", false) })) != 1 {
		t.Error("a part that isn't current passes")
	}
	pagetest.Golden(t, page, "keys", "new\n", true)
	got, err := os.ReadFile(page)
	if want := "# Page\n<!-- keys: begin -->\nnew\n<!-- keys: end -->\nthe rest\n"; err != nil || string(got) != want {
		t.Errorf("%q %v", got, err)
	}
}

func TestAPageWithoutThePartFails(t *testing.T) {
	for _, without := range []string{"", "# Page\n", "<!-- keys: begin -->\nold\n", "<!-- other: begin -->\n<!-- other: end -->\n"} {
		page := write(t, without)
		if len(record(t, func(t testing.TB) { pagetest.Part(t, page, "keys") })) != 1 {
			t.Errorf("%q passes", without)
		}
	}
}
