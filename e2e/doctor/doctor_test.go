// Package doctor runs `optimist doctor` against the real engines.
package doctor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// examine runs the command on an engine with a rule for the given indices, and returns what it printed and its exit status.
func examine(t *testing.T, e *engine.Engine, indices ...string) (string, int) {
	t.Helper()
	return examineRule(t, e, "match: {index: ["+strings.Join(indices, ", ")+"]}")
}

func examineRule(t *testing.T, e *engine.Engine, says string) (string, int) {
	t.Helper()
	binary, err := optimist.Binary(true)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "optimist.yaml")
	rule := "rules:\n  - {name: mine, " + says + "}\n"
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "doctor", "--upstream", e.URL, "--config", file).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return string(out), 0
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	}
	t.Fatal(err)
	return "", 0
}

// create makes an index; false if this engine refuses its settings.
func create(t *testing.T, e *engine.Engine, body string) (string, bool) {
	t.Helper()
	name := e.Index(t)
	a, err := e.Do(context.Background(), http.MethodPut, "/"+name, body)
	if err != nil {
		t.Fatal(err)
	}
	return name, a.Status == http.StatusOK
}

func want(t *testing.T, report string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(report) {
			t.Errorf("the report lacks %s:\n%s", p, report)
		}
	}
}

func TestDoctorKnowsEveryEngine(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		name, ok := create(t, e, `{}`)
		if !ok {
			t.Fatal("an index can't be made")
		}
		report, status := examine(t, e, name)
		if status != 0 {
			t.Errorf("status %d", status)
		}
		product := map[engine.Kind]string{engine.OpenSearch38: "OpenSearch 3.8.0", engine.ES7: "Elasticsearch 7.10.2", engine.ES9: "Elasticsearch 9.5.3"}
		scripts := `^note +scripts +the engine has no Painless`
		if e.Kind.Scripts() {
			scripts = `^ok +scripts +Painless runs`
		}
		want(t, report, `^ok +reachable +`+e.URL+`: `+product[e.Kind], `^ok +version`, `^ok +health`, `^ok +primaries`, scripts,
			`^ok +indices +\d+ seen, 1 taken by rules, all guarded in full`)
	})
}

// TestDoctorFindsIndicesThatCannotBeMerged: those settings that the engine takes are found out.
func TestDoctorFindsIndicesThatCannotBeMerged(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		found := 0
		for why, body := range map[string]string{
			`default_pipeline enrich`: `{"settings":{"default_pipeline":"enrich"}}`,
			`final_pipeline enrich`:   `{"settings":{"final_pipeline":"enrich"}}`,
			`_source excludes`:        `{"mappings":{"_source":{"excludes":["secret"]}}}`,
			`_source disabled`:        `{"mappings":{"_source":{"enabled":false}}}`,
			`synthetic _source`:       `{"settings":{"index.mapping.source.mode":"synthetic"}}`,
			`derived _source`:         `{"settings":{"index.derived_source.enabled":true}}`,
			// Elasticsearch leaves vectors out of _source from 9.2 on; the older engines have no such setting.
			`_source without vectors`: `{"settings":{"index.mapping.exclude_source_vectors":true},"mappings":{"properties":{"v":{"type":"dense_vector","dims":2}}}}`,
		} {
			name, ok := create(t, e, body)
			if !ok {
				continue // not a setting of this engine
			}
			found++
			report, status := examine(t, e, name)
			if status != 0 {
				t.Errorf("%s: status %d", why, status)
			}
			want(t, report, `^warn +`+name+` +mine +guards; a conflict is a 409, nothing is merged +`+why)
		}
		if found < 4 {
			t.Errorf("only %d kinds of index could be tried", found)
		}
	})
}

func TestDoctorFindsIndicesThatRefuseEveryWrite(t *testing.T) {
	const strict = `{"mappings":{"dynamic":"strict","properties":{"n":{"type":"long"}}}}`
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		for _, c := range []struct{ body, says, why string }{
			{`{"settings":{"index.blocks.write":true}}`, "", `index.blocks.write`},
			{strict, ", write_id: _w", "write_id: the mapping is `dynamic: strict`, and has no field _w"},
			{strict, ", transform: [{op: now, path: /at}]", "transform: the mapping is `dynamic: strict`, and has no field at"},
			{strict, ", base: {stamp: n}", `base.stamp: n is a field`},
			{`{"mappings":{"properties":{"_w":{"properties":{"n":{"type":"long"}}}}}}`, ", write_id: _w", "write_id: _w is mapped as object"},
			{strict, ", transform: [{op: now, path: /n/at}]", "transform: n is mapped as long, and has no field n.at"},
		} {
			name, ok := create(t, e, c.body)
			if !ok {
				t.Fatalf("an index can't be made of %s", c.body)
			}
			report, status := examineRule(t, e, "match: {index: ["+name+"]}"+c.says)
			if status != 1 {
				t.Errorf("%s: status %d", c.why, status)
			}
			want(t, report, `^FAIL +`+name+` +mine +writes fail +`+regexp.QuoteMeta(c.why), `Something won't work`)
		}
		for says, body := range map[string]string{
			"":                strict,
			", write_id: any": `{"mappings":{"dynamic":"strict","properties":{"any":{"type":"object","enabled":false}}}}`,
			", transform: [{op: now, path: /any/at}]": `{"mappings":{"dynamic":"strict","properties":{"any":{"type":"object","enabled":false}}}}`,
		} {
			name, _ := create(t, e, body)
			if report, status := examineRule(t, e, "match: {index: ["+name+"]}"+says); status != 0 {
				t.Errorf("%s: status %d:\n%s", says, status, report)
			}
		}
	})
}

func TestDoctorFindsIndicesWithoutSequenceNumbers(t *testing.T) {
	e := engine.Shared(t, engine.ES9)
	name, ok := create(t, e, `{"settings":{"index.disable_sequence_numbers":true}}`)
	if !ok {
		t.Skip("this engine has no such setting")
	}
	report, status := examine(t, e, name)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	want(t, report, `^FAIL +`+name+` +mine +forwards writes unguarded`, `Something won't work`)
}
