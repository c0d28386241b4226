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
