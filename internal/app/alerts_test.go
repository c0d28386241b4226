package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"optimist/proxy"
)

type alert struct {
	Alert, Expr string
	Labels      struct{ Severity string }
	Annotations struct{ Summary string }
}

// alerts are those that users get with optimist.
func alerts(t *testing.T) (list []alert) {
	t.Helper()
	text, err := os.ReadFile("../../configs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// TestEveryAlertSaysWhatItMeansAndHowUrgentItIs: operators have no other description of it.
func TestEveryAlertSaysWhatItMeansAndHowUrgentItIs(t *testing.T) {
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels.Severity) {
			t.Errorf("%s has the severity %q, by which nobody routes alerts", a.Alert, a.Labels.Severity)
		}
		if a.Annotations.Summary == "" {
			t.Errorf("%s has no summary", a.Alert)
		}
	}
}

var (
	selector  = regexp.MustCompile(`(optimist_\w+)(?:\{([^}]*)\})?`)
	condition = regexp.MustCompile(`(\w+)=~?"([^"]*)"`)
)

// One condition had no comparison, so that it held for ever. Some asked by how much a counter has grown that wasn't there before its first
// event.
func TestEveryAlertComparesWhatIsThere(t *testing.T) {
	known, err := os.ReadFile("../obs/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	there := seriesAtStart(t)
	for _, a := range alerts(t) {
		for part := range strings.SplitSeq(a.Expr, " or ") {
			if part, _, _ = strings.Cut(part, " unless "); !regexp.MustCompile(` (>|==) [01]$`).MatchString(part) {
				t.Errorf("%s: %q compares nothing", a.Alert, part)
			}
		}
		for _, m := range selector.FindAllStringSubmatch(a.Expr, -1) {
			name := m[1]
			if !strings.Contains(string(known), " "+name+": ") {
				t.Errorf("%s: there is no metric %s", a.Alert, name)
			}
			if there[name] == nil && !strings.Contains(a.Expr, "or "+name+" > 0 unless "+name+" offset 5m") {
				t.Errorf("%s: there is no %s before its first event", a.Alert, name)
			}
			for _, c := range condition.FindAllStringSubmatch(m[2], -1) {
				for value := range strings.SplitSeq(c[2], "|") {
					if !there[name][c[1]+"="+value] {
						t.Errorf("%s: there is no %s with %s=%q before its first event", a.Alert, name, c[1], value)
					}
				}
			}
		}
	}
}

// seriesAtStart are the metrics that are there before anything has happened, each with its labels as name=value.
func seriesAtStart(t *testing.T) map[string]map[string]bool {
	return series(t, newWorld(t, "", Identity{}))
}

func series(t *testing.T, w *world) map[string]map[string]bool {
	t.Helper()
	families, err := w.app.metrics.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]map[string]bool{}
	for _, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()+"="+l.GetValue()] = true
			}
		}
		there[f.GetName()] = labels
	}
	return there
}

// The alert for an engine that can't be reached held for one that has too much to do, too.
func TestTheAlertForAnUnreachableEngineIsNotForABusyOne(t *testing.T) {
	for _, a := range alerts(t) {
		if m := regexp.MustCompile(`type=~"([^"]*)"`).FindStringSubmatch(a.Expr); m != nil && a.Alert == "OptimistUnreachableEngine" {
			types := regexp.MustCompile("^(?:" + m[1] + ")$")
			if types.MatchString(proxy.TypeLimited) || types.MatchString(proxy.TypeBusy) || !types.MatchString(proxy.TypeUnreachable) {
				t.Errorf("it takes %s", m[1])
			}
			return
		}
	}
	t.Error("there is no such alert")
}
