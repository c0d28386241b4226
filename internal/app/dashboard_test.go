package app

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// dashboard is as much of Grafana's model of a dashboard as configs/dashboard.json uses and the tests look at.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct{ Name, Type, Definition, AllValue string }

type panel struct {
	ID                       int
	Title, Description, Type string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []target
}

type target struct{ RefID, Expr, LegendFormat string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../configs/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := json.Indent(&again, text, "", "  "); err != nil || !bytes.Equal(again.Bytes(), text) {
		t.Error("it isn't indented as Grafana exports it: the next change in Grafana would touch every line")
	}
	return d
}

// Grafana doesn't refuse a dashboard for these mistakes: it shows panels above one another, or takes two targets for one.
func TestGrafanaShowsTheDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 {
		t.Errorf("no title, uid or schemaVersion: %q, %q, %d", d.Title, d.UID, d.SchemaVersion)
	}
	if n := len(d.Panels); n < 8 || n > 12 {
		t.Errorf("it has %d panels: 8 to 12 fit on a screen or two", n)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.Description == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d, %q: its id is another's, or it has no title, description or ${datasource}", p.ID, p.Title)
		}
		ids[p.ID] = true
		if at := p.GridPos; at.X+at.W > 24 || at.W < 1 || at.H < 1 {
			t.Errorf("%s: it leaves the grid of 24 columns: %+v", p.Title, at)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[cell]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.RefID == "" {
				t.Errorf("%s: two targets have the refId %q", p.Title, q.RefID)
			}
			refs[q.RefID] = true
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "datasource" && v.Type != "query" {
			t.Errorf("the variable %s has the type %q", v.Name, v.Type)
		}
		if v.AllValue != "" {
			t.Errorf("All of %s is %q, which also takes what isn't an optimist: up and process_… are of every process", v.Name, v.AllValue)
		}
	}
}

var (
	seriesOf = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	grouping = regexp.MustCompile(` by \(([^)]*)\)`)
	listed   = regexp.MustCompile(`^label_values\((\w+)`)
	legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// After a load in which everything happens that the dashboard shows, no query is without a series, or groups by a label that isn't there.
func TestTheDashboardShowsWhatOptimistExposes(t *testing.T) {
	exposed := seriesAfterLoad(t)
	d := readDashboard(t)
	for _, v := range d.Templating.List {
		if m := listed.FindStringSubmatch(v.Definition); v.Type == "query" && (m == nil || exposed[m[1]] == nil) {
			t.Errorf("the variable %s lists what optimist doesn't expose: %s", v.Name, v.Definition)
		}
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			found := seriesOf.FindAllStringSubmatch(q.Expr, -1)
			if len(found) != 1 {
				t.Fatalf("%s: the test reads one selector in each query, not %q", p.Title, q.Expr)
			}
			name, conditions := found[0][1], found[0][2]
			labels := []string{"job", "instance"} // Prometheus adds them
			own, isBucket := strings.CutSuffix(name, "_bucket")
			if isBucket {
				labels = append(labels, "le")
			}
			values := exposed[own]
			if name == "up" { // Prometheus makes it
				values = map[string]bool{}
			}
			if values == nil {
				t.Errorf("%s: optimist doesn't expose %s", p.Title, name)
			}
			for value := range values {
				label, _, _ := strings.Cut(value, "=")
				labels = append(labels, label)
			}
			if !strings.HasPrefix(conditions, `job=~"$job", instance=~"$instance"`) {
				t.Errorf("%s: %s isn't limited to the jobs and instances that the user chose", p.Title, name)
			}
			for _, c := range condition.FindAllStringSubmatch(conditions, -1) {
				if chosen := c[1] == "job" || c[1] == "instance"; !chosen && !values[c[1]+"="+c[2]] {
					t.Errorf("%s: there is no %s with %s", p.Title, name, c[0])
				}
			}
			by := ""
			for _, m := range grouping.FindAllStringSubmatch(q.Expr, -1) {
				by = m[1]
				if !slices.Contains(labels, by) {
					t.Errorf("%s: %s has no label %s", p.Title, name, by)
				}
			}
			for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if m[1] != by {
					t.Errorf("%s: the legend names %s, and the query keeps %q", p.Title, m[1], by)
				}
			}
		}
	}
}

// seriesAfterLoad are the metrics of an optimist whose clients have collided, each with its labels as name=value.
func seriesAfterLoad(t *testing.T) map[string]map[string]bool {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(`{version: 1, admin: "",
dead_letters: {folder: `+t.TempDir()+`},
upstream: {health_interval: 0s, adaptive_limit: true},
rules: [{name: seen, match: {index: [seen]}, mode: observe}, {name: shop, match: {index: [shop]}}]}`),
		config.Overrides{Upstream: []string{enginetest.Serve(t)}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Config: c, Rules: compiled(t, c)}) // a test's usual App has no folder for dead letters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.Serve()
	w := &world{t: t, app: a, proxied: a.URL()}
	for _, index := range []string{"seen", "shop"} {
		document := "/" + index + "/_doc/1"
		w.ask(w.proxied, "PUT", document, `{"n":1,"status":"new"}`)
		for _, session := range []string{"ann", "bob"} {
			w.ask(w.proxied, "GET", document, "", "Optimist-Session", session)
		}
		for _, session := range []string{"ann", "bob"} {
			w.ask(w.proxied, "PUT", document, `{"n":2,"status":"`+session+`"}`, "Optimist-Session", session)
		}
	}
	w.ask(w.proxied, "PUT", "/_lock/global/nightly", `{"owner":"ann","ttl":"30s"}`)
	return series(t, w)
}
