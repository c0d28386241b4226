package diff

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/rewrite/tree"
)

type tb interface {
	Helper()
	Fatal(args ...any)
}

// below measures the distance from base to sent.
func below(t tb, base, sent string, limit int) (Distance, bool) {
	t.Helper()
	m, err := NewMeasurer([]byte(sent), tree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d, is, err := m.Below([]byte(base), limit)
	if err != nil {
		t.Fatal(err)
	}
	return d, is
}

// What decides between two candidates for a base, in the order of the sentences of the specification.
func TestTheCloserBase(t *testing.T) {
	measure := func(base, sent string) Distance {
		d, _ := below(t, base, sent, math.MaxInt)
		return d
	}
	sent := `{"n":10,"l":["a","b","mine"],"o":{"x":1}}`
	for name, c := range map[string][2]string{
		"fewer fields":                         {`{"n":9,"l":["a","b","mine"],"o":{"x":1}}`, `{"n":9,"l":["a","b","mine"],"o":{"x":2}}`},
		"fewer elements":                       {`{"n":10,"l":["a","b"],"o":{"x":1}}`, `{"n":10,"l":["a","b","mine","theirs","more"],"o":{"x":1}}`},
		"an element is an edit as a field is":  {`{"n":10,"l":["a","b"],"o":{"x":1}}`, `{"n":9,"l":["a","b"],"o":{"x":1}}`},
		"the smaller delta":                    {`{"n":9,"l":["a","b","mine"],"o":{"x":1}}`, `{"n":8,"l":["a","b","mine"],"o":{"x":1}}`},
		"the smaller delta, whatever its sign": {`{"n":11,"l":["a","b","mine"],"o":{"x":1}}`, `{"n":8,"l":["a","b","mine"],"o":{"x":1}}`},
		"to the last digit":                    {`{"n":9.00000000000000000002,"l":["a","b","mine"],"o":{"x":1}}`, `{"n":9.00000000000000000001,"l":["a","b","mine"],"o":{"x":1}}`},
		"edits before delta":                   {`{"n":-1000,"l":["a","b","mine"],"o":{"x":1}}`, `{"n":9,"l":["a","b","mine"],"o":{"x":2}}`},
		"deltas add up":                        {`{"n":9,"l":["a","b","mine"],"o":{"x":2}}`, `{"n":10.5,"l":["a","b","mine"],"o":{"x":3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			closer, farther := measure(c[0], sent), measure(c[1], sent)
			if closer.Compare(farther) >= 0 || farther.Compare(closer) <= 0 {
				t.Errorf("%+v is not closer than %+v", closer, farther)
			}
		})
	}
	if measure(sent, sent).Compare(Distance{}) != 0 {
		t.Error("a document is not at distance zero from itself")
	}
}

func TestADeltaThatCannotBeWrittenOutIsTheLargerOne(t *testing.T) {
	for _, s := range []string{"1e1001", "1e-1001", "1e999999999999999", "1e99999999999999999999999", "1e-99999999999999999999999",
		"0." + strings.Repeat("0", 1001) + "1", strings.Repeat("9", 1001), "1." + strings.Repeat("0", 1001)} {
		d, _ := below(t, `{"a":1}`, fmt.Sprintf(`{"a":%s}`, s), math.MaxInt)
		if again := d; d.Edits > 1 || d.Compare(again) != 0 {
			t.Errorf("%.20s: %v", s, d)
		}
	}
	near, _ := below(t, `{"a":1}`, `{"a":1e999}`, math.MaxInt)
	far, _ := below(t, `{"a":1}`, `{"a":1e1001}`, math.MaxInt)
	if near.Compare(far) >= 0 || far.Compare(near) <= 0 {
		t.Error("a delta that can't be written out is not the larger one")
	}
}

// A caller who has no use for more edits must not pay for them, and must learn that there are more.
func TestTheMeasurementStopsAtItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.Custom(func(t *rapid.T) string {
			var members []string
			for i, v := range rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", `"x"`, "[1,2]", "[2,[1]]", `[{"a":1,"b":1}]`, `[{"a":2}]`, `{"a":[1]}`, `{"b":{}}`}),
				0, 6).Draw(t, "values") {
				members = append(members, fmt.Sprintf(`"k%d":%s`, i, v))
			}
			return "{" + strings.Join(members, ",") + "}"
		})
		base, sent := doc.Draw(t, "base"), doc.Draw(t, "sent")
		want, _ := below(t, base, sent, math.MaxInt)
		for limit := -1; limit <= want.Edits+1; limit++ {
			d, is := below(t, base, sent, limit)
			if is != (want.Edits <= limit) || is && d.Compare(want) != 0 {
				t.Fatalf("limit %d: %+v, %v; want %+v\n%s\n%s", limit, d, is, want, base, sent)
			}
		}
	})
}
