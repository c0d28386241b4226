package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Modules that are run through go test -json, and what is said of them.
var cases = map[string]struct {
	file string // a_test.go of the module
	code int
	want []string // in the output, each
	not  []string // not in the output
}{
	"subtests count, their parents don't": {
		`func TestA(t *testing.T) { t.Run("x", ok); t.Run("y", ok); t.Run("z", skip) }
		func TestB(t *testing.T) {}
		func ok(*testing.T) {}
		func skip(t *testing.T) { t.Skip("why") }`,
		0, []string{"3 passed, 0 failed, 1 skipped\n"}, []string{"FAIL"},
	},
	"a failure is shown with what it printed, other tests are not": {
		`func TestA(t *testing.T) { t.Run("x", func(t *testing.T) { t.Error("the reason") }) }
		func TestB(t *testing.T) { t.Log("not this") }`,
		1, []string{"--- FAIL: m TestA/x\n", "the reason", "\n1 passed, 1 failed, 0 skipped\n"}, []string{"not this", "=== RUN"},
	},
	"a parent that fails by itself counts beside its subtests": {
		`func TestA(t *testing.T) { t.Run("x", func(*testing.T) {}); t.Error("the reason") }`,
		1, []string{"--- FAIL: m TestA\n", "1 passed, 1 failed, 0 skipped"}, nil,
	},
	"a panic is the failure of its test": {
		`func TestA(t *testing.T) { t.Run("x", func(*testing.T) { panic("the reason") }) }`,
		1, []string{"--- FAIL: m TestA/x\n", "panic: the reason", "0 passed, 1 failed, 0 skipped"}, nil,
	},
	"a process that ends in the middle is a failure": {
		`func TestA(*testing.T) {}
		func TestB(*testing.T) { os.Exit(3) }`,
		1, []string{"--- FAIL: m TestB\n", "1 passed, 1 failed, 0 skipped"}, nil,
	},
	"a process that ends well in the middle is a failure, too": {
		`func TestMain(*testing.M) { os.Exit(4) }`,
		1, []string{"--- FAIL: m\n", "0 passed, 1 failed, 0 skipped"}, nil,
	},
	"a benchmark counts as a test": {
		`func BenchmarkA(b *testing.B) { for b.Loop() {} }`,
		0, []string{"1 passed, 0 failed, 0 skipped"}, []string{"FAIL"},
	},
	"a benchmark that fails is a failure": {
		`func BenchmarkA(b *testing.B) { for b.Loop() {} }
		func BenchmarkB(b *testing.B) { b.Fatal("the reason") }`,
		1, []string{"--- FAIL: m BenchmarkB\n", "the reason"}, nil,
	},
	"what does not build is a failure": {
		`func TestA(*testing.T) { undefined() }`,
		1, []string{"--- FAIL: m\n", "undefined: undefined", "0 passed, 1 failed, 0 skipped"}, nil,
	},
}

func TestSummaryOfRealRuns(t *testing.T) {
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out := summariseRunOf(t, c.file)
			if code != c.code {
				t.Errorf("status %d, want %d", code, c.code)
			}
			for _, s := range c.want {
				if !strings.Contains(out, s) {
					t.Errorf("%q is missing", s)
				}
			}
			for _, s := range c.not {
				if strings.Contains(out, s) {
					t.Errorf("%q is there", s)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// summariseRunOf writes a module with the tests, runs them, and returns what run makes of that.
func summariseRunOf(t *testing.T, tests string) (int, string) {
	t.Helper()
	dir := t.TempDir()
	source := "package m\n\nimport (\n\"os\"\n\"testing\"\n)\n\nvar _ = os.Exit\n\n" + tests + "\n"
	for name, content := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "a_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-bench=.", "-benchtime=1x", "-vet=off", ".")
	cmd.Dir = dir
	events, _ := cmd.Output() // the failures are what is looked for
	file := filepath.Join(dir, "events.json")
	if err := os.WriteFile(file, events, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code, err := run([]string{file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String()
}

func TestTotalsAddUpFilesWithoutTheFailures(t *testing.T) {
	t.Parallel()
	pass := `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	fail := `{"Action":"output","Package":"q","Test":"TestA","Output":"why\n"}` + "\n" + `{"Action":"fail","Package":"q","Test":"TestA"}` + "\n"
	var files []string
	for _, content := range []string{pass, pass + fail} {
		file := filepath.Join(t.TempDir(), "events.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var out bytes.Buffer
	code, err := run(append([]string{"-totals"}, files...), &out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "2 passed, 1 failed, 0 skipped\n"; got != want || code != 1 {
		t.Errorf("status %d, output %q, want %q", code, got, want)
	}
}

func TestNoFileIsWrongUsage(t *testing.T) {
	t.Parallel()
	if code, err := run(nil, &bytes.Buffer{}); code != 2 || err == nil {
		t.Errorf("status %d, error %v", code, err)
	}
	if code, err := run([]string{filepath.Join(t.TempDir(), "none")}, &bytes.Buffer{}); code != 2 || err == nil {
		t.Errorf("status %d, error %v", code, err)
	}
}

func TestAPackageThatIsRunTwiceHasFailedIfOneRunHas(t *testing.T) {
	t.Parallel()
	sum, err := read(strings.NewReader(`{"Action":"fail","Package":"m"}
{"Action":"pass","Package":"m","Test":"TestAllocations"}
{"Action":"pass","Package":"m"}
`))
	if err != nil || sum.failed != 1 || sum.passed != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}
