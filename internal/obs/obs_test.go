package obs

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestEveryMetricIsTold holds the names, labels and helps that users build on to a golden file.
func TestEveryMetricIsTold(t *testing.T) {
	m := NewMetrics(Build{Version: "1.2.3", Revision: "abc", Go: "go1.26"})
	m.Request("index", 201, 10, 20)
	m.Request("get", 404, -1, 5)
	m.Request("other", 0, 0, 0)
	m.Fetches.Inc("shop")
	m.Batched(3)
	m.Failed("upstream_unreachable")
	m.DialsFailed.Inc("http://es1:9200", "refused")
	m.Ejections.Inc("http://es1:9200")
	m.Waits.Inc("http://es1:9200")
	m.Resent.Inc()
	m.Outcomes.Inc("merged", "")
	m.Outcomes.Inc("passed", "signed")
	m.WriteTook("index", 3*time.Millisecond)
	m.Base("read", true)
	m.LostBases.Inc("evicted")
	m.Conflicts.Inc("shop")
	m.Retries.Add(4, "shop")
	m.Merged("shop", 2)
	m.StrategiesUnused.Inc("shop")
	m.Marks.Inc("shop", "applied")
	m.Keys.Inc("first")
	m.Untransformed.Inc("shop")
	m.Unstamped.Inc("too_large")
	m.Observed("merged")
	m.LostUpdates("orders", 1)
	m.EqualMove("shop")
	m.Blind("orders")
	m.Unguardable.Inc("no_seq_no")
	m.LockRequest("foreground", "acquired", 3*time.Millisecond)
	m.LockRequest("background", "timeout", time.Second)
	m.LockContended.Inc("background")
	m.LeasesLapsed(1, true)
	m.UndoNoted.Inc()
	m.UndoEnded.Inc("committed")
	m.Undone.Add(2, "restored")
	m.LetterKept("conflict", "store")
	m.LetterReplayed("replayed")
	m.WatchLetters(func() (int, int64) { return 2, 4096 })
	m.WatchWrites(func() Writes { return Writes{Limit: 20, Out: 3, Foreground: 2, Background: 1, Refused: 4} })
	m.WatchLocks(func() int { return 3 }, func(string) int { return 2 })
	m.Mode("guard", "guard", "observe", "off")
	m.Reloaded(true, time.UnixMilli(1700000000500))
	m.Reloaded(false, time.Time{})
	m.WatchReady(func() bool { return true })
	m.WatchConnections(func() int { return 7 })
	m.WatchMemory(48<<20, func() int64 { return 3 << 20 })
	m.MemoryRefused(true)
	m.MemoryRefused(false)
	m.WatchSessions(func() Sessions { return Sessions{Hits: 3, Misses: 1, Evictions: 2, Bytes: 1024, Entries: 5} })
	m.WatchNodes(func() []Node {
		return []Node{{Name: "http://es1:9200", Up: true, Open: 9, Idle: 4}}
	})
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	missing := metricNames(t)
	var b strings.Builder
	for _, f := range families {
		delete(missing, f.GetName())
		if !strings.HasPrefix(f.GetName(), "optimist_") {
			continue
		}
		fmt.Fprintf(&b, "%s %s: %s\n", f.GetType(), f.GetName(), f.GetHelp())
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			value := one.GetCounter().GetValue() + one.GetGauge().GetValue() + float64(one.GetHistogram().GetSampleCount())
			fmt.Fprintf(&b, "\t{%s} %v\n", strings.Join(labels, ","), value)
		}
	}
	for name := range missing {
		t.Errorf("%s isn't shown, because nothing of it was counted here: it would be missing in the operators' table, too", name)
	}
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("metrics changed (-want +got); if that is meant: go test ./internal/obs -update\n%s", d)
	}
}

// metricNames are the values of all constants of names.go that name a metric.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("names.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\tMetric\w+\s+= "(\w+)"$`).FindAllSubmatch(text, -1) {
		names[string(m[1])] = true
	}
	return names
}

func TestMetricsWithoutARegistryCountNothing(t *testing.T) {
	var m Metrics
	m.Request("index", 200, 1, 1)
	m.Failed("upstream_busy")
	m.Outcomes.Inc("passed", "")
	m.Base("none", false)
	m.Observed("")
	m.LostUpdates("", 1)
	m.EqualMove("")
	m.Blind("")
	m.Merged("", 1)
	m.WriteTook("index", time.Second)
	m.LockRequest("foreground", "acquired", time.Second)
}

func TestIndexNamesAreCappedAndCopied(t *testing.T) {
	l := NewIndexLabels(2)
	buf := []byte("orders")
	name := string(buf)
	if got := l.Label(name); got != "orders" {
		t.Fatalf("got %q", got)
	}
	if got := l.Label("shop"); got != "shop" {
		t.Fatalf("got %q", got)
	}
	if got := l.Label("third"); got != OtherIndex {
		t.Fatalf("the third name of two is %q", got)
	}
	if got := l.Label("orders"); got != "orders" {
		t.Fatalf("a known name became %q", got)
	}
}

func TestCountingARequestAllocatesNothing(t *testing.T) {
	m := NewMetrics(Build{})
	l := m.indices
	l.Label("orders")
	if n := testing.AllocsPerRun(100, func() {
		m.Request("index", 201, 1, 1)
		m.Outcomes.Inc("guarded", "")
		m.WriteTook("index", time.Millisecond)
		m.Base("read", false)
		l.Label("orders")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLogLevelChangesWhileRunning(t *testing.T) {
	for _, json := range []bool{false, true} {
		var b bytes.Buffer
		level := new(slog.LevelVar)
		log := Logger(&b, json, level)
		log.Debug("hidden")
		level.Set(Level("debug"))
		log.Debug("shown", KeyIndex, "orders")
		if s := b.String(); strings.Contains(s, "hidden") || !strings.Contains(s, "shown") || json != strings.HasPrefix(s, "{") {
			t.Errorf("json %v: %q", json, s)
		}
	}
	for name, want := range map[string]slog.Level{"debug": -4, "info": 0, "warn": 4, "error": 8, "": 0} {
		if got := Level(name); got != want {
			t.Errorf("%q is %v", name, got)
		}
	}
}

func TestStatusesAreClasses(t *testing.T) {
	for status, want := range map[int]string{0: "none", 99: "none", 101: "1xx", 204: "2xx", 301: "3xx", 409: "4xx", 504: "5xx", 600: "none"} {
		if got := class(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
}

func BenchmarkCountingARequest(b *testing.B) {
	m := NewMetrics(Build{})
	for b.Loop() {
		m.Request("index", 201, 100, 200)
	}
}
