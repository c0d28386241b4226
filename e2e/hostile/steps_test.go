package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"optimist/e2e/hostile/attacks"
)

// The size of the smaller request, in bytes, and what the larger one, of twice the size, may cost.
const (
	smallAttack = 8 << 10
	mostGrowth  = 2.4 // times the steps of the smaller one: a little more than linear
	mostSteps   = 800 // blocks of code for each byte of the larger one
	mostBounded = 1 << 28
	noise       = 4000
)

// What a client sends costs no more than in proportion to its size, whatever its form: twice the size, twice the steps. Steps are the blocks of
// code that were run, of optimist's own packages and of the readers of JSON that they use. The engine's aren't counted.
func TestTwiceTheSizeIsTwiceTheSteps(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "steps")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-o", binary, "-coverpkg="+counted(t), "optimist/e2e/hostile/steps")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, engine := range map[string]string{"an engine that carries out": "", "an engine that refuses": "refused"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counters := runSteps(t, binary, engine, "")
			for i, attack := range attacks.All() {
				small, large := steps(t, counters, i, 1), steps(t, counters, i, 2)
				if os.Getenv("HOSTILE_STEPS") != "" {
					t.Logf("%-45s %9d %9d %.2f", attack.Name, small, large, float64(large)/float64(small))
				}
				for try := 1; tooMany(&attack, small, large) && try < attackTries; try++ {
					again := runSteps(t, binary, engine, attack.Name)
					small, large = steps(t, again, i, 1), steps(t, again, i, 2)
				}
				if tooMany(&attack, small, large) {
					t.Errorf("%s: %d steps, and %d for twice the size", attack.Name, small, large)
				}
			}
		})
	}
}

// tooMany reports whether the steps of a request and of one of twice the size are too many, or grow too fast. How much of a bulk is written
// before its first refusal is heard is a matter of luck: what is too much has to be so each time.
func tooMany(a *attacks.Attack, small, large int64) bool {
	if a.Bounded != "" {
		return large > mostBounded
	}
	return float64(large) > mostGrowth*float64(small)+noise || large > mostSteps*2*smallAttack
}

// runSteps counts the steps of all attacks, or of the one of that name, and returns where the counters are.
func runSteps(t *testing.T, binary, engine, attack string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	run := exec.Command(binary, dir, strconv.Itoa(smallAttack), engine, attack)
	run.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// counted are the packages whose blocks count.
func counted(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "optimist/e2e/hostile/steps").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range strings.Fields(string(out)) {
		ours := strings.HasPrefix(p, "optimist/") && p != "optimist/e2e/hostile/attacks" && p != "optimist/internal/embedded"
		if ours || strings.HasPrefix(p, "github.com/tidwall/") {
			list = append(list, p)
		}
	}
	return strings.Join(list, ",")
}

// covdata is the tool that reads counters. `go tool` takes longer than the tool itself.
var covdata = sync.OnceValue(func() string {
	out, err := exec.Command("go", "tool", "-n", "covdata").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
})

// steps adds up the counters of one request.
func steps(t *testing.T, dir string, i, n int) (total int64) {
	t.Helper()
	from, text := filepath.Join(dir, fmt.Sprint(i, "-", n)), filepath.Join(t.TempDir(), "counters")
	if out, err := exec.Command(covdata(), "textfmt", "-i="+from, "-o="+text).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) != 3 { // mode: atomic
			continue
		}
		n, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}
