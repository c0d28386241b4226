package rewrite

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

type fixed bool

func (f fixed) Holds(*Inputs) (bool, error) { return bool(f), nil }
func (fixed) ReadsCurrent() bool            { return false }
func (fixed) ReadsCandidate() bool          { return false }

type failing struct{ fixed }

func (failing) Holds(*Inputs) (bool, error) { return false, fmt.Errorf("no such key") }

func TestExplainTellsWhatBecameOfEachStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []Step
		want  string // changed, idle (nothing changed), not held, or the error
		doc   string
	}{
		{"in their order", []Step{
			{Action: OpDefault, Path: "/a", Value: Value{Literal: []byte("1")}},
			{Action: OpDefault, Path: "/a", Value: Value{Literal: []byte("2")}},
			{Action: OpIncrement, Path: "/a", Value: Value{Literal: []byte("5")}, When: fixed(true)},
			{Action: OpRemove, Path: "/b", When: fixed(false)},
			{Action: OpNow, Path: "/t", Format: "epoch_second"},
		}, "changed, idle, changed, not held, changed", `{"b":1,"a":6,"t":5}`},
		{"a test that fails", []Step{
			{Action: OpRemove, Path: "/b"},
			{Action: OpTest, Path: "/b", Value: Value{Literal: []byte("1")}},
			{Action: OpRemove, Path: "/b"},
		}, "changed, failed", ""},
		{"a condition that fails", []Step{{Action: OpRemove, Path: "/b", When: failing{}}}, "failed", ""},
		{"a type that doesn't fit", []Step{{Action: OpAppend, Path: "/b", Value: Value{Literal: []byte("1")}}}, "failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := NewTransformer(c.steps, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			in := &Inputs{Now: time.Unix(5, 0)}
			doc, told, err := tr.Explain([]byte(`{"b":1}`), in)
			want, wantErr := tr.Apply([]byte(`{"b":1}`), in)
			if string(doc) != string(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) || string(doc) != c.doc {
				t.Errorf("%s (%v), and Apply says %s (%v)", doc, err, want, wantErr)
			}
			var got []string
			for _, s := range told {
				switch {
				case s.Err != nil:
					got = append(got, "failed")
					if c.name != "a condition that fails" && s.Err.Error() != wantErr.Error() {
						t.Errorf("told %v, and Apply says %v", s.Err, wantErr)
					}
				case !s.Held:
					got = append(got, "not held")
				case s.Changed:
					got = append(got, "changed")
				default:
					got = append(got, "idle")
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("told %q, want %s", got, c.want)
			}
		})
	}
}
