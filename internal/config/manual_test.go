package config

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"optimist/internal/pagetest"
)

// The comments on the structs are the manual. This file makes of them what users read: the reference in docs/configuration.md
// and the file configs/optimist.yaml; and the tests hold both to the structs.

// manual is the comments, by struct and field, and the names that Go has for keys.
type manual struct {
	structs map[string]string
	fields  map[string]string
	keys    map[string]string
}

func readManual(t *testing.T) *manual {
	t.Helper()
	m := &manual{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, name := range []string{"config.go", "idempotency.go", "letters.go", "locks.go", "rules.go", "transform.go", "undo.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					m.add(ts, d.Doc.Text())
				}
			}
		}
	}
	return m
}

func (m *manual) add(ts *ast.TypeSpec, doc string) {
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return
	}
	m.structs[ts.Name.Name] = doc
	for _, f := range st.Fields.List {
		if f.Tag == nil || len(f.Names) == 0 {
			continue
		}
		name := f.Names[0].Name
		m.fields[ts.Name.Name+"."+name] = f.Doc.Text()
		m.keys[name] = keyOf(reflect.StructField{Tag: reflect.StructTag(strings.Trim(f.Tag.Value, "`"))})
	}
}

// text is a comment as users read it beside the key: one paragraph that doesn't begin with "Name is", with keys where Go's names stand.
// Names are known by their inner capitals, since Mode or Default are words, too.
func (m *manual) text(doc, self string) string {
	words := strings.Fields(strings.TrimPrefix(doc, self+" "))
	if len(words) > 0 && (words[0] == "is" || words[0] == "are") {
		words = words[1:]
	}
	for i, w := range words {
		bare := strings.Trim(w, ".,:;()`")
		key, ok := m.keys[bare]
		if ok && strings.ToLower(bare[1:]) != bare[1:] && strings.ToUpper(bare) != bare {
			words[i] = strings.Replace(w, bare, "`"+key+"`", 1)
		}
	}
	text := strings.Join(words, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// inShort is what a row of the reference has of a key's meaning: the first sentence, and those about defaults, 0, "" and dangers. The file
// configs/optimist.yaml has all of them.
func inShort(meaning string) string {
	sentences := strings.SplitAfter(meaning, ". ")
	return strings.TrimSpace(sentences[0] + strings.Join(slices.DeleteFunc(sentences[1:], func(s string) bool {
		return !slices.ContainsFunc([]string{"Default:", "0 ", "0:", "With 0", "Empty", "Danger:"}, func(begin string) bool { return strings.HasPrefix(s, begin) })
	}), ""))
}

// section is one struct of the configuration, at the path where it stands.
type section struct {
	path string
	t    reflect.Type
}

// sections lists the structs in the order of the file.
func sections(path string, t reflect.Type) []section {
	list := []section{{path, t}}
	for _, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		ft := f.Type
		if key != "" && isSection(ft) && ft.Kind() == reflect.Slice {
			ft, key = ft.Elem(), key+"[]"
		}
		if key != "" && isSection(ft) {
			list = append(list, sections(join(path, key), ft)...)
		}
	}
	return list
}

// isSection reports whether a type has keys of its own, or is a list of one that does.
func isSection(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[nodeDecoder]()) {
		return false
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return t.Elem().Name() == "Rule" || t.Elem().Name() == "Step"
	}
	return t.Kind() == reflect.Struct
}

// defaults are the values of an empty file, as JSON, by path.
func defaults() map[string]string {
	c := start()
	all := leaves(c)
	text, _ := json.Marshal(c.Rules[0]) // it is made of strings and numbers
	collect("rules[]", text, all)
	all["rules[].name"] = ""
	all["rules[].merge.paths"] = "{}"
	all["rules[].match.headers"] = "{}"
	return all
}

// value is a default as YAML in one line.
func value(raw string) string {
	if raw == "null" {
		return "[]"
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil {
		if s == "" || s == "off" {
			return fmt.Sprintf("%q", s)
		}
		return s
	}
	var list []string
	if json.Unmarshal([]byte(raw), &list) == nil {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return raw
}

func canReload(path string) bool {
	return slices.ContainsFunc(reloadable(), func(k string) bool {
		return path == k || strings.HasPrefix(path, k+".") || strings.HasPrefix(path, k+"[]")
	})
}

// defaultCell is a key's default, as the reference has it.
func defaultCell(path string, all map[string]string) string {
	raw, ok := all[path]
	if text := value(raw); ok && path != "rules" && text != "" && text != `""` {
		return "`" + text + "`"
	}
	return ""
}

// keyCell is a key, with a link if it has a section of its own.
func keyCell(path, key string, t reflect.Type) string {
	switch {
	case !isSection(t):
		return "`" + key + "`"
	case path == "rules":
		return "[`rules`](rules.md)"
	}
	return "[`" + key + "`](#" + strings.NewReplacer(".", "", "[]", "").Replace(path) + ")"
}

// TestTheReferenceIsTheStructs writes, or compares, the reference of docs/configuration.md.
func TestTheReferenceIsTheStructs(t *testing.T) {
	m, all := readManual(t), defaults()
	var b strings.Builder
	said := map[string]bool{} // what a row above says needs no introduction
	fmt.Fprintf(&b, "\nA change of `%s` counts after a reload. All other changes need a restart.\n", strings.Join(reloadable(), "`, `"))
	for _, s := range sections("", reflect.TypeFor[Config]()) {
		if strings.HasPrefix(s.path, "rules[]") {
			continue // docs/rules.md has them
		}
		title, intro := "`"+s.path+"`", m.text(m.structs[s.t.Name()], s.t.Name())
		if s.path == "" {
			title, intro = "The file", "The keys at the top."
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		if !said[intro] {
			b.WriteString(intro + "\n\n")
		}
		b.WriteString("| key | default | meaning |\n| --- | --- | --- |\n")
		for _, f := range reflect.VisibleFields(s.t) {
			if key := keyOf(f); key != "" {
				path := join(s.path, key)
				meaning := m.text(m.fields[s.t.Name()+"."+f.Name], f.Name)
				said[meaning] = true
				fmt.Fprintf(&b, "| %s | %s | %s |\n", keyCell(path, key, f.Type), defaultCell(path, all), strings.ReplaceAll(inShort(meaning), "|", "\\|"))
			}
		}
	}
	pagetest.Golden(t, "../../docs/configuration.md", "reference", b.String()+"\n", *update)
}

// TestTheRulesPageHasEveryKeyAndItsDefault: no reference is generated of a rule's keys, so docs/rules.md is held to the code. The row or the
// paragraph that names a key in backticks has its default: "| `VALUE` |", "`VALUE` (default", "(default: `VALUE`" or "default VALUE".
func TestTheRulesPageHasEveryKeyAndItsDefault(t *testing.T) {
	const name = "../../docs/rules.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.ReplaceAll(string(text), "\n|", "\n\n|"), "\n\n")
	all := defaults()
	for _, s := range sections("rules[]", reflect.TypeFor[Rule]()) {
		for _, f := range reflect.VisibleFields(s.t) {
			key := keyOf(f)
			if key == "" || isSection(f.Type) {
				continue
			}
			about := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
				return !strings.Contains(part, "`"+key+"`") && !strings.Contains(part, "."+key+"`")
			})
			path := join(s.path, key)
			if len(about) == 0 {
				t.Errorf("%s doesn't name %s", name, path)
				continue
			}
			raw, ok := all[path]
			want := strings.Trim(value(raw), `"`)
			if !ok || want == "" || want == "[]" || want == "{}" {
				continue
			}
			says := regexp.MustCompile(strings.ReplaceAll("\\| `V` \\||`V` \\(default|\\(default: `V`|default V\\b", "V", regexp.QuoteMeta(want)))
			if !slices.ContainsFunc(about, func(part string) bool { return says.MatchString(strings.Join(strings.Fields(part), " ")) }) {
				t.Errorf("%s doesn't say that the default of %s is %s", name, path, want)
			}
		}
	}
}

// TestTheCommentedFileIsTheStructs writes, or compares, configs/optimist.yaml, and sees that it says what no file says.
func TestTheCommentedFileIsTheStructs(t *testing.T) {
	const file = "../../configs/optimist.yaml"
	var b strings.Builder
	b.WriteString(`# yaml-language-server: $schema=schema.json
# optimist's configuration: every key, what it does, and its default. All but upstream.urls can be left out, and
# most should be: what stands here is what the file {} means.
#
# Check a file with ` + "`optimist check FILE`" + `. Keys marked (restart) are read at start only; a change of the others counts
# when the file is saved, or on SIGHUP. File names are relative to the folder of this file. Durations are written as in the engine:
# 500ms, 30s, 5m. Sizes: 64KiB, 256MiB, 1GiB.
`)
	w := &fileWriter{m: readManual(t), all: defaults(), b: &b}
	w.section("", reflect.TypeFor[Config](), 0)
	golden(t, file, b.String())

	c, err := Parse("optimist.yaml", []byte(b.String()), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings()) > 0 {
		t.Error(c.Warnings())
	}
	want := Default()
	want.Upstream.URLs = []string{"http://127.0.0.1:9200"}
	if d := differing(want, c); len(d) > 0 {
		t.Errorf("the commented file isn't what an empty one means: %v", d)
	}
}

// TestExamplesInTheDocsAreRight parses every block of YAML on the pages about configuration, deployment and operation.
func TestExamplesInTheDocsAreRight(t *testing.T) {
	for _, page := range []string{"../../docs/configuration.md", "../../docs/deploying.md", "../../docs/operations.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```yaml\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s has no examples", page)
		}
		for _, block := range blocks {
			example, _, _ := strings.Cut(block, "```")
			c, err := Parse("example", []byte(example), Overrides{})
			if err != nil {
				t.Errorf("%s:\n%s\n%v", page, example, err)
			} else if len(c.Warnings()) > 0 {
				t.Errorf("%s:\n%s\n%v", page, example, c.Warnings())
			}
		}
	}
}

type fileWriter struct {
	m   *manual
	all map[string]string
	b   *strings.Builder
}

func (w *fileWriter) section(path string, t reflect.Type, depth int) {
	indent := strings.Repeat("  ", depth)
	for i, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		if key == "" {
			continue
		}
		sub, lead := join(path, key), indent
		if path == "rules[]" && i == 0 {
			lead = strings.Repeat("  ", depth-1) + "- "
		}
		if depth < 2 || f.Type.Kind() == reflect.Struct || i > 0 {
			w.b.WriteByte('\n')
		}
		note := ""
		if f.Type.Kind() != reflect.Struct && !canReload(sub) {
			note = " (restart)"
		}
		if strings.HasPrefix(sub, "rules[].transform[]") {
			w.example(key, w.m.text(w.m.fields[t.Name()+"."+f.Name], f.Name), indent, i == 0)
			continue
		}
		w.comment(w.m.text(w.m.fields[t.Name()+"."+f.Name], f.Name)+note, strings.TrimSuffix(lead, "- "))
		switch ft := f.Type; {
		case sub == "rules":
			w.b.WriteString("rules:\n")
			w.section("rules[]", ft.Elem(), depth+2)
		case sub == "rules[].transform":
			w.b.WriteString(lead + "transform: []\n")
			w.section("rules[].transform[]", ft.Elem(), depth)
		case ft.Kind() == reflect.Struct:
			fmt.Fprintf(w.b, "%s%s:\n", lead, key)
			w.section(sub, ft, depth+1)
		default:
			w.b.WriteString(lead + w.pair(sub, key) + "\n")
		}
	}
}

// pair is one key with its value; those whose default can't be written stand as comments with an example.
func (w *fileWriter) pair(path, key string) string {
	switch path {
	case "upstream.urls":
		return "urls: [http://127.0.0.1:9200]"
	case "rules[].name":
		return "name: default"
	case "rules[].match.index":
		return `# index: [shop, "orders-*"]`
	case "rules[].mode":
		return "mode: guard"
	case "rules[].on_delete_conflict":
		return "# on_delete_conflict: sent"
	case "rules[].match.headers":
		return "headers: {}   # {X-Tenant: \"acme-*\"}"
	case "rules[].match.users":
		return "# users: [batch, \"svc-*\"]"
	case "rules[].base.from":
		return "# from: [if_match, session]"
	case "rules[].merge.paths":
		return "paths: {}   # {/stock: sum, /tags: union, /seen_at: max, /lines: {by_key: sku}, /status: fail}"
	}
	return key + ": " + value(w.all[path])
}

// example is a key of a step: the list is empty by default, so that a whole one stands there as a comment.
func (w *fileWriter) example(key, text, indent string, first bool) {
	said := map[string]string{"op": "increment", "path": "/edits", "from": "/old", "value": "1", "format": "rfc3339", "when": "'incoming.status == \"published\"'"}
	lead := "#   "
	if first {
		lead = "# - "
	}
	w.comment(text, indent+"#   ")
	fmt.Fprintf(w.b, "%s%s%s: %s\n", indent, lead, key, said[key])
}

// comment wraps a text at 110 columns.
func (w *fileWriter) comment(text, indent string) {
	line := indent + "#"
	for _, word := range unbroken(text) {
		if len(line)+1+len(word) > 110 {
			w.b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	w.b.WriteString(line + "\n")
}

// unbroken cuts a text into words, taking what stands in backquotes as one, and the backquotes off.
func unbroken(text string) []string {
	const space = "\x00"
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], " ", space)
	}
	words := strings.Fields(strings.Join(parts, ""))
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, space, " ")
	}
	return words
}

// TestEachSectionHasItsOwnManual: a struct of two keys would describe one of them by the comments of the other. Only what means the same in
// both places may be shared.
func TestEachSectionHasItsOwnManual(t *testing.T) {
	places := map[reflect.Type][]string{}
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		places[t] = append(places[t], path)
		for _, f := range reflect.VisibleFields(t) {
			if key := keyOf(f); key != "" {
				walk(f.Type, join(path, key))
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	for of, paths := range places {
		if len(paths) > 1 && of != reflect.TypeFor[Auth]() {
			t.Errorf("%v is the manual of %s", of, strings.Join(paths, " and of "))
		}
	}
}
