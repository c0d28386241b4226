package rewrite

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"optimist/rewrite/edit"
)

// allocated returns how many bytes a call takes from the heap in all.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestCopiesThatDoubleADocumentEndEarlyAndSmall: 92 bytes of gzip became 54 MB, and twelve requests at once 2.9 GB.
func TestCopiesThatDoubleADocumentEndEarlyAndSmall(t *testing.T) {
	// Bytes from the heap, of all steps together. Without a bound it is gigabytes; under the race detector, whose pools forget, 160 MiB.
	const most = 256 << 20
	for name, content := range map[string]string{
		"a text": `"` + strings.Repeat("x", 1000) + `"`, "numbers": strings.Repeat("1,", 999) + "1", "objects": strings.Repeat("{},", 999) + "{}",
		"members": strings.Repeat(`{"a":1},`, 999) + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			doc := []byte(`{"l":[` + content + `]}`)
			var steps []Step
			var patch Patch
			for range 20 {
				steps = append(steps, Step{Action: OpCopy, From: "/l", Path: "/l/-"})
				patch = append(patch, Operation{Op: "copy", From: "/l", Path: "/l/-"})
			}
			tr := mustTransformer(t, Limits{}, steps...)
			for _, apply := range []func() ([]byte, error){
				func() ([]byte, error) { return tr.Apply(doc, &Inputs{}) },
				func() ([]byte, error) { return patch.Apply(doc, Limits{}) },
			} {
				var err error
				n := allocated(func() { _, err = apply() })
				if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `(copy "/l/-")`) {
					t.Errorf("%v", err)
				}
				if n > most {
					t.Errorf("%d MiB", n>>20)
				}
			}
		})
	}
}

func TestWhatEditsAddIsBoundedBesideTheDocumentsOwnSize(t *testing.T) {
	value := `"` + strings.Repeat("x", 998) + `"`
	add := func(n int) (p Patch) {
		for i := range n {
			p = append(p, Operation{Op: "add", Path: fmt.Sprintf("/%d", i%10), Value: []byte(value)})
		}
		return p
	}
	large := []byte(`{"a":` + `"` + strings.Repeat("y", 5000) + `"}`)
	for n, fits := range map[int]bool{1: true, 2: true, 4: false, 40: false} {
		_, err := add(n).Apply(large, Limits{Growth: 3000})
		if (err == nil) != fits || !fits && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d values of 1,000 bytes: %v", n, err)
		}
	}
	_, err := edit.MergePatch(large, []byte(`{"b":`+value+`,"c":`+value+`,"d":`+value+`}`), Limits{Growth: 3000})
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	numbers := "[" + series(0, 1000, 1, func(i int) string { return fmt.Sprint(i) }) + "]"
	union := mustTransformer(t, Limits{Growth: 2000}, Step{Action: OpUnion, Path: "/l", Value: literal(numbers)})
	if _, err := union.Apply(large, &Inputs{}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
