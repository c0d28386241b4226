package obs

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestOperatorsReadOfEveryMetric writes, or compares, the table of metrics in docs/operations.md.
func TestOperatorsReadOfEveryMetric(t *testing.T) {
	const page, begin, end = "../../docs/operations.md", "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n"
	told, err := os.Open("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	var table strings.Builder
	table.WriteString("| metric | what it tells |\n| --- | --- |\n")
	labels, name, help := "", "", ""
	row := func() {
		if name != "" {
			table.WriteString("| `" + name + labels + "` | " + help + " |\n")
		}
	}
	for lines := bufio.NewScanner(told); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "\t{"); ok {
			labels = labelNames(rest)
			continue
		}
		row()
		_, line, _ = strings.Cut(line, " ")
		name, help, _ = strings.Cut(line, ": ")
		labels = ""
	}
	row()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the metrics", page)
	}
	want := head + begin + table.String() + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table of metrics in %s is not current: go test ./internal/obs -update", page)
	}
}

// labelNames is {a,b} of a series' labels, or nothing.
func labelNames(series string) string {
	var names []string
	for _, part := range strings.Split(series[:strings.LastIndex(series, "}")], ",") {
		if n, _, ok := strings.Cut(part, "="); ok {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, ",") + "}"
}
