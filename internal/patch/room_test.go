package patch

import (
	"errors"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/wire"
)

type full struct{ err error }

func (f full) Take(int64) error { return f.err }

// A patch that finds no memory isn't wrong: its client has to hear that it may come again.
func TestAPatchWithoutMemoryIsNoBadPatch(t *testing.T) {
	for media, body := range map[string]string{
		MediaOperations: `[{"op":"add","path":"/a","value":1}]`, MediaSteps: `[{"op":"add","path":"/a","value":1}]`, MediaMerge: `{"a":[` + strings.Repeat("0,", 1<<15) + `0]}`,
	} {
		fields := []wire.Field{{Name: []byte("Content-Type"), Value: []byte(media)}}
		for _, want := range []error{budget.ErrOverloaded, budget.ErrTooMuch} {
			if _, refusal, err := Read(&api.Op{Kind: api.Patch}, fields, []byte(body), full{want}); !errors.Is(err, want) || refusal != nil {
				t.Errorf("%s: %v, %v", media, refusal, err)
			}
		}
		if _, refusal, err := Read(&api.Op{Kind: api.Patch}, fields, []byte(body), nil); err != nil || refusal != nil {
			t.Errorf("%s, with memory: %v, %v", media, refusal, err)
		}
	}
}
