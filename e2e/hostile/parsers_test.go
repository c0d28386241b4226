package hostile

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"optimist/e2e/hostile/attacks"
)

// reads says whose text a package reads with a parser, and what bounds that. Clients' text costs no more than in proportion to its size:
// TestTwiceTheSizeIsTwiceTheSteps counts the steps of whole requests, of the forms whose names begin as forms says. What an engine answers
// is read in TestHostileAnswersHurtNobody. Nothing of either goes down by recursion without a bound: jsontext.Valid stands before gjson's
// own check (forbidigo), rewrite/tree and encoding/json have bounds of their own.
type reads struct {
	forms    []string // of the attacks that a client makes on it
	engine   bool     // it reads answers of the engine
	operator string   // why nobody but an operator, or optimist itself, decides what it reads
}

// parsers are all packages that take JSON, YAML, CEL, regular expressions, large numbers or gzip data apart.
var parsers = map[string]reads{
	"internal/ack":       {engine: true},
	"internal/api":       {forms: []string{"path", "query"}},
	"internal/app":       {forms: []string{"locks"}, engine: true},
	"internal/apply":     {forms: []string{"PUT: ", "_update", "steps"}},
	"internal/bulk":      {forms: []string{"_bulk"}, engine: true},
	"internal/coding":    {forms: []string{"PUT: "}, engine: true}, // its bounds are of bytes: the bombs
	"internal/condition": {forms: []string{"steps"}},               // what a patch's conditions may cost is counted by CEL itself, and bounded
	"internal/es":        {engine: true},
	"internal/gate":      {forms: []string{"PUT: ", "_update", "_bulk"}},
	"internal/glob":      {forms: []string{"filter_path", "_source"}},
	"internal/intake":    {forms: []string{"PUT: ", "_update"}},
	"internal/intent":    {forms: []string{"PUT: ", "_update"}},
	"internal/intercept": {forms: []string{"_aliases", "_bulk", "upsert"}, engine: true},
	"internal/jsontext":  {forms: []string{"PUT: ", "_mget", "_search"}, engine: true},
	"internal/learn":     {forms: []string{"PUT: "}},
	"internal/mark":      {forms: []string{"PUT: "}, engine: true},
	"internal/patch":     {forms: []string{"patch", "merge patch", "PATCH", "steps"}},
	"internal/rank":      {forms: []string{"PUT: "}},
	"internal/choice":    {forms: []string{"PUT: "}},
	"internal/respond":   {engine: true},
	"internal/viewcache": {forms: []string{"PUT: "}},
	"internal/session":   {forms: []string{"PUT: "}},
	"internal/stamp":     {forms: []string{"PUT: "}, engine: true},
	"internal/watch":     {forms: []string{"_mget", "_search"}, engine: true},
	"internal/write":     {forms: []string{"PUT: ", "_update", "upsert"}, engine: true},
	"lockrouter":         {forms: []string{"lock"}},
	"lockrouter/compat":  {forms: []string{"compat"}},
	"lockrouter/engine":  {engine: true},
	"lockrouter/state":   {engine: true},
	"proxy":              {engine: true},
	"rewrite/diff":       {forms: []string{"PUT: "}},
	"rewrite/edit":       {forms: []string{"steps", "patch"}},
	"rewrite/merge":      {forms: []string{"PUT: "}},
	"rewrite/tree":       {forms: []string{"PUT: ", "merge patch"}},

	// Records that optimist itself has written into the engine, of clients' requests.
	"internal/deadletter":  {forms: []string{"PUT: "}, engine: true},
	"internal/idempotency": {forms: []string{"PUT: "}, engine: true},
	"internal/undo":        {forms: []string{"PUT: "}, engine: true},

	// Values of other stores, which whoever reaches these may write: see TestNonsenseIsNoLock, and the guard of lockrouter/zookeeper.
	"lockrouter/memcached": {forms: []string{"lock"}},
	"lockrouter/zookeeper": {forms: []string{"lock"}},

	"client":           {operator: "it is the client"},
	"cmd/optimist":     {operator: "the answers of optimist's own admin listener"},
	"internal/admin":   {operator: "requests of an operator, of 64 KiB at most"},
	"internal/config":  {operator: "the configuration"},
	"internal/demo":    {operator: "the demo's own requests"},
	"internal/doctor":  {engine: true},
	"internal/explain": {operator: "the command's arguments, and rules' tests"},
	"internal/rule":    {operator: "the configuration"},
	// Not in front of anybody's engine, but the fuzzer and the steps go through it as well.
	"internal/demo/app":   {operator: "the demo's own application"},
	"internal/embedded":   {operator: "for demos and tests: it has no other clients"},
	"internal/ruletest":   {operator: "rules' tests"},
	"internal/certtest":   {operator: "for tests"},
	"internal/enginetest": {operator: "for tests"},

	"lockrouter/conformance": {operator: "for tests"},
}

// isParser reports whether a package of that path takes text apart.
func isParser(path string) bool {
	for _, p := range []string{"github.com/tidwall/gjson", "github.com/tidwall/sjson", "encoding/json", "encoding/xml", "encoding/gob", "compress/", "go.yaml.in/",
		"cel.dev/", "math/big", "regexp", "optimist/rewrite/tree", "optimist/internal/jsontext", "github.com/klauspost/compress"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// TestEveryParserHasABound holds the table against the code: no package takes text apart that isn't in it, and none is in it that doesn't.
func TestEveryParserHasABound(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "e2e" || rel == "tools" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			if name, err := strconv.Unquote(i.Path.Value); err == nil && isParser(name) {
				found[filepath.ToSlash(filepath.Dir(rel))] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if _, listed := parsers[p]; !listed {
			t.Errorf("%s takes text apart: say in the table whose, and what bounds it", p)
		}
	}
	forms := attacks.All()
	for p, r := range parsers {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(p))); err == nil && !found[p] {
			t.Errorf("%s is in the table, and takes nothing apart", p)
		}
		if len(r.forms) == 0 && !r.engine && r.operator == "" {
			t.Errorf("%s: nobody's text", p)
		}
		for _, form := range r.forms {
			if !slices.ContainsFunc(forms, func(a attacks.Attack) bool { return strings.HasPrefix(a.Name, form) }) {
				t.Errorf("%s: no attack's name begins with %q", p, form)
			}
		}
	}
}
