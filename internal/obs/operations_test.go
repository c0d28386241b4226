package obs

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"optimist/internal/pagetest"
)

// TestOperatorsReadOfEveryMetric writes, or compares, the table of metrics in docs/operations.md.
func TestOperatorsReadOfEveryMetric(t *testing.T) {
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
	pagetest.Golden(t, "../../docs/operations.md", "metrics", table.String(), *update)
}

// TestPagesNameOnlyMetricsThatExist finds metrics that a page names and that the program doesn't have, or has by another name.
func TestPagesNameOnlyMetricsThatExist(t *testing.T) {
	told, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	metric := regexp.MustCompile(`optimist_[a-z_]+`)
	there := metric.FindAllString(string(told), -1)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metric.FindAllString(string(text), -1) {
			if !slices.Contains(there, name) && !slices.Contains(there, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s names %s", page, name)
			}
		}
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
