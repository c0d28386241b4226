// Package pagetest reads and writes the parts of pages that tests hold to the code: what stands between `<!-- name: begin -->` and
// `<!-- name: end -->`.
//
// It is for tests only. Nothing of the program imports it.
package pagetest

import (
	"os"
	"strings"
	"testing"
)

// Part returns the part of the page with that name. If the page has none, Part ends the test.
func Part(t testing.TB, page, name string) string {
	t.Helper()
	_, part, _ := cut(t, page, name)
	return part
}

// Golden reports an error if the part of the page isn't want. With update, it writes want there instead.
func Golden(t testing.TB, page, name, want string, update bool) {
	t.Helper()
	head, part, tail := cut(t, page, name)
	switch {
	case part == want:
	case !update:
		t.Errorf("the %s in %s aren't current: run the tests of this package with -update. %s", name, page, differing(part, want))
	default:
		if err := os.WriteFile(page, []byte(head+want+tail), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	}
}

// cut returns the page in three: up to the part, the part, and the rest. The marks belong to what is around the part.
func cut(t testing.TB, page, name string) (head, part, tail string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	head, rest, ok := strings.Cut(string(text), begin)
	part, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the %s", page, name)
	}
	return head + begin, part, end + tail
}

// differing shows the first line in which two texts differ.
func differing(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(a)-1 && i < len(b)-1 && a[i] == b[i] {
		i++
	}
	return "It has\n" + a[i] + "\nand not\n" + b[i]
}
