package pagetest_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"optimist/internal/pagetest"
)

var update = flag.Bool("update", false, "write docs/layers.svg and the table in docs/architecture.md anew")

const (
	root    = "../.."
	drawing = root + "/docs/layers.svg"
	page    = root + "/docs/architecture.md"
)

// box is a part of a layer in the drawing: packages, and what they have in common.
type box struct {
	caption  string
	packages []string // without internal/
}

// layer is packages that import each other, and packages of the layers below.
type layer struct {
	name, about string
	fill        string
	rows        [][]box
}

// layers are the packages of the program, from above to below. The drawing and the table are made of this list.
var layers = []layer{
	{"programs", "the program: operators start it, or other programs import it", "#e8eef7", [][]box{{
		{"flags, signals", []string{"cmd/optimist"}}, {"tests of rules", []string{"ruletest"}},
		{"asks a cluster", []string{"doctor"}}, {"shows lost changes", []string{"demo", "demo/app"}},
		{"for others' programs", []string{"/client"}},
	}}},
	{"wiring", "everything; it decides nothing", "#e8eef7", [][]box{{
		{"puts it all together", []string{"app"}}, {"for operators", []string{"admin"}}, {"an engine in memory", []string{"embedded"}},
	}}},
	{"entrance", "requests: which path each takes", "#dcebdd", [][]box{{
		{"documents, bulks, the rest", []string{"intercept"}},
		{"locks: the requests, and the stores", []string{"lockrouter", "lockrouter/compat", "lockrouter/conformance", "lockrouter/engine",
			"lockrouter/memcached", "lockrouter/memory", "lockrouter/zookeeper"}},
	}}},
	{"paths", "one read, one write, the items of one bulk", "#dcebdd", [][]box{{
		{"one read", []string{"watch"}}, {"one write, from request to answer", []string{"write"}},
		{"items that travel together", []string{"bulk"}}, {"dry runs", []string{"explain"}},
	}}},
	{"a write's parts", "one thing each that a write needs before and after its attempts", "#f6eedb", [][]box{
		{{"before: its request, its base, its rule, locks", []string{"intake", "base", "apply", "gate", "journal"}},
			{"to the engine, and back", []string{"outbound", "delivery", "ack", "noop"}},
			{"at a bad end", []string{"doubt", "undeliverable"}}},
	}},
	{"values", "clients and what they have seen and want; indices; what outlives a request or the process", "#f6eedb", [][]box{
		{{"who sent it", []string{"client", "etag", "tenantheader"}}, {"what clients have seen", []string{"session", "viewcache", "repeat"}},
			{"indices", []string{"catalog", "indexstate"}}},
		{{"PATCH and _update", []string{"patch"}}, {"what conflicts teach", []string{"learn"}},
			{"kept in files and indices", []string{"notefile", "deadletter", "idempotency", "undo"}},
			{"when again", []string{"retry"}}},
	}},
	{"pure", "documents, rules, choices: no I/O, no clock", "#efe3f3", [][]box{
		{{"what a client wants", []string{"intent"}}, {"documents: changed, merged", []string{"rewrite/edit", "rewrite/merge", "rewrite/diff",
			"rewrite/tree", "rewrite/arena", "rewrite"}}},
		{{"which base", []string{"choice", "rank", "note"}}, {"which rule, and when", []string{"rule", "condition"}},
			{"who has a lock", []string{"lockrouter/state"}}},
	}},
	{"HTTP", "how requests come in, and how the engine is asked; nothing of guards", "#fbe3dc", [][]box{{
		{"the door: requests in, answers out", []string{"proxy"}}, {"answers", []string{"respond"}},
		{"optimist's own questions", []string{"es"}}, {"the engine's nodes", []string{"upstream", "pressure"}},
	}}},
	{"words", "the terms that all others share", "#eeeeee", [][]box{
		{{"documents, clients, what happened", []string{"doc", "identity", "outcome", "stamp", "mark"}},
			{"requests", []string{"api", "wire", "uri", "fencing", "coding"}}},
		{{"texts", []string{"jsontext", "glob", "unit", "spelling", "printable"}},
			{"time, and fair shares", []string{"hook", "timer", "budget", "share", "fairqueue", "quota", "large", "linked"}},
			{"the process", []string{"config", "obs", "secure", "filelock", "roundtrip"}}},
	}},
}

// forTests are packages that only tests import, and that of end-to-end tests.
var forTests = []string{"certtest", "configtest", "enginetest", "notetest", "pagetest"}

// folder is where a package is, from the root.
func folder(name string) string {
	if strings.HasPrefix(name, "/") {
		return name[1:]
	}
	for _, above := range []string{"cmd/", "lockrouter", "retry", "rewrite", "proxy"} {
		if strings.HasPrefix(name, above) {
			return name
		}
	}
	return "internal/" + name
}

// readPackages finds the folders of the program's packages, each with what it imports of the others.
func readPackages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"e2e", "tools", "testdata", ".git"}, d.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		in := filepath.ToSlash(filepath.Dir(name))
		imports := all[in]
		for _, i := range file.Imports {
			if of, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "optimist/"); ok {
				imports = append(imports, of)
			}
		}
		all[in] = imports
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestImportsPointDownInTheDrawing: each package stands in one layer, and imports nothing of the layers above.
func TestImportsPointDownInTheDrawing(t *testing.T) {
	all, level := readPackages(t), map[string]int{}
	for i, l := range layers {
		for _, b := range slices.Concat(l.rows...) {
			for _, name := range b.packages {
				in := folder(name)
				if _, ok := all[in]; !ok {
					t.Errorf("there is no package %s", in)
				}
				if _, twice := level[in]; twice {
					t.Errorf("%s stands twice", in)
				}
				level[in] = i
			}
		}
	}
	for _, in := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(forTests, strings.TrimPrefix(in, "internal/")) {
			continue
		}
		at, ok := level[in]
		if !ok {
			t.Errorf("%s stands in no layer: add it to the list in this file, and run the test with -update", in)
		}
		for _, of := range all[in] {
			if below, ok := level[of]; ok && below < at {
				t.Errorf("%s, among the %s, imports %s, among the %s", in, layers[at].name, of, layers[below].name)
			}
		}
	}
}

// TestTheTableIsTheLayers writes, or compares, the table of layers in docs/architecture.md.
func TestTheTableIsTheLayers(t *testing.T) {
	var list strings.Builder
	list.WriteString("| layer | what its packages know about |\n| --- | --- |\n")
	for _, l := range layers {
		fmt.Fprintf(&list, "| %s | %s |\n", l.name, l.about)
	}
	pagetest.Golden(t, page, "layers", list.String(), *update)
}

// The drawing's measures, in its units.
const (
	width, left, right, gap, line = 1000, 150, 984, 8, 18
	letter                        = 7.3 // of a package's name
	small                         = 6.1 // of a caption
)

// TestTheDrawingIsTheLayers writes, or compares, docs/layers.svg.
func TestTheDrawingIsTheLayers(t *testing.T) {
	var b strings.Builder
	y := 16
	for i, l := range layers {
		top := y
		for _, row := range l.rows {
			y = drawRow(&b, row, y, l.fill) + gap
		}
		words(&b, 16, top+21, `font-size="14" font-weight="bold" fill="#222"`, l.name)
		if i < len(layers)-1 {
			fmt.Fprintf(&b, `<line x1="76" y1="%d" x2="76" y2="%d" stroke="#666" stroke-width="1.5" marker-end="url(#a)"/>`+"\n", top+28, y+6)
		}
		y += 6
	}
	want := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" role="img" `+
		`aria-label="The layers of optimist. Imports point down.">
<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">`+
		`<path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>
<rect width="%d" height="%d" fill="#ffffff"/>
%s</svg>
`, width, y+4, width, y+4, b.String())
	if *update {
		if err := os.WriteFile(drawing, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(drawing); err != nil || string(got) != want {
		t.Errorf("%s isn't current: go test ./internal/pagetest -update (%v)", drawing, err)
	}
}

// drawRow draws boxes beside each other, each as wide as its words want, and returns where they end.
func drawRow(b *strings.Builder, row []box, y int, fill string) int {
	want, sum := make([]float64, len(row)), 0.0
	for i, x := range row {
		want[i] = max(small*float64(len(x.caption)), letter*float64(len(strings.Join(x.packages, "  ")))/float64(lines(x, row)), 60) + 20
		sum += want[i]
	}
	room := float64(right - left - gap*(len(row)-1))
	rows := 1
	cells := make([][]string, len(row))
	for i, x := range row {
		cells[i] = wrap(x.packages, int((want[i]*room/sum-16)/letter))
		rows = max(rows, len(cells[i]))
	}
	height, x := 14+line*(rows+1), float64(left)
	for i, c := range cells {
		w := want[i] * room / sum
		fmt.Fprintf(b, `<rect x="%.0f" y="%d" width="%.0f" height="%d" rx="6" fill="%s" stroke="#888"/>`+"\n", x, y, w, height, fill)
		for n, names := range c {
			words(b, int(x+w/2), y+20+line*n, `text-anchor="middle" font-size="13" font-weight="bold" fill="#222"`, names)
		}
		words(b, int(x+w/2), y+height-10, `text-anchor="middle" font-size="12" fill="#444"`, row[i].caption)
		x += w + gap
	}
	return y + height
}

// lines is over how many lines a box spreads its packages: over more if the row has too many for one.
func lines(x box, row []box) int {
	all := 0
	for _, other := range row {
		all += len(strings.Join(other.packages, "  ")) + 4
	}
	if float64(all)*letter <= right-left || len(x.packages) == 1 {
		return 1
	}
	return 2
}

// wrap puts names into lines of at most n letters.
func wrap(names []string, n int) (list []string) {
	for _, name := range names {
		name = strings.TrimPrefix(name, "/")
		if last := len(list) - 1; last >= 0 && len(list[last])+len(name) <= n {
			list[last] += " · " + name
			continue
		}
		list = append(list, name)
	}
	return list
}

func words(b *strings.Builder, x, y int, how, what string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, how, what)
}
