package rewrite

import (
	"fmt"
	"sync"
	"testing"
)

// The memory of a call is used again by the next: what it returned must not be in it.
func TestResultsOutliveTheirCall(t *testing.T) {
	m := mustMerger(t, Sent, PathRule{Path: "/n", Strategy: Sum}, PathRule{Path: "/l", Strategy: Union})
	base, sent, current := []byte(`{"n":1,"l":[1],"s":"a"}`), []byte(`{"n":2,"l":[1,2],"s":"b"}`), []byte(`{"n":5,"l":[1,3],"s":"c"}`)
	res, err := m.Merge(base, sent, current)
	if err != nil {
		t.Fatal(err)
	}
	clear(base)
	clear(sent)
	clear(current)
	for range 10 {
		if _, err := m.Merge([]byte(`{"n":7}`), []byte(`{"n":8,"x":"yyyyyyyyyyyyyyyyyyy"}`), []byte(`{"n":9}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(res.Doc); got != `{"n":6,"l":[1,3,2],"s":"b"}` || res.Overwritten[0] != "/s" {
		t.Errorf("%s, %q", got, res.Overwritten)
	}
}

func TestNothingChangedIsTheSameSlice(t *testing.T) {
	current := []byte(` {"a":2} `)
	res, err := mustMerger(t, Sent).Merge([]byte(`{"a":1}`), []byte(`{"a":1}`), current)
	if err != nil || res.Changed || &res.Doc[0] != &current[0] || len(res.Doc) != len(current) {
		t.Errorf("%s, %v", res.Doc, err)
	}
}

func TestConcurrentCallsDoNotShareAnything(t *testing.T) {
	m := mustMerger(t, Sent, PathRule{Path: "/n", Strategy: Sum}, PathRule{Path: "/k", Strategy: ByKey, Key: "id"})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				base := fmt.Appendf(nil, `{"n":%d,"l":[1,2,3],"k":[{"id":1}]}`, i)
				sent := fmt.Appendf(nil, `{"n":%d,"l":[1,2,3,%d],"k":[{"id":1,"g":%d}]}`, i+g, g, g)
				current := fmt.Appendf(nil, `{"n":%d,"l":[0,1,2,3],"k":[{"id":2},{"id":1}]}`, i+1)
				want := fmt.Sprintf(`{"n":%d,"l":[0,1,2,3,%d],"k":[{"id":2},{"id":1,"g":%d}]}`, i+1+g, g, g)
				res, err := m.Merge(base, sent, current)
				if err != nil || string(res.Doc) != want {
					t.Errorf("%s, %v; want %s", res.Doc, err, want)
					return
				}
				if p, err := Diff(base, sent); err != nil || len(p) == 0 {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// What decides between two candidates for a base, in the order of the sentences of the specification.
func TestTheCloserBase(t *testing.T) {
	measure := func(base, sent string) Distance {
		d, err := Measure([]byte(base), []byte(sent))
		if err != nil {
			t.Fatal(err)
		}
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
