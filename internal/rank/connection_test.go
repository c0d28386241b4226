package rank

import (
	"fmt"
	"testing"

	"optimist/internal/doc"
)

// counters are revisions of a counter, the first of which has the count 0.
func counters(n int) (cs []Candidate) {
	for i := range n {
		cs = append(cs, Candidate{Revision: doc.Revision{
			Numbers: doc.Numbers{SeqNo: int64(i), PrimaryTerm: 1}, Version: int64(i + 1), Source: fmt.Appendf(nil, `{"n":%d}`, i),
		}})
	}
	return cs
}

// TestConnectionsCountAsFarAsTheyTell: a save that changes nothing looks like a change of an older revision.
func TestConnectionsCountAsFarAsTheyTell(t *testing.T) {
	unchanged := func(c Connections) Choice {
		cs := counters(8)
		cs[6].Own = true // and the client saves what it has read
		return Likeliest(cs, Sent{Body: []byte(`{"n":6}`), Connections: c})
	}
	var none, own, pool Connections
	for i := range 100 {
		own.Add(Agrees)
		pool.Add([]Evidence{Agrees, Contradicts, NoEvidence}[i%3])
	}
	if c := unchanged(none); c.Best != 5 || c.Connection != NoEvidence {
		t.Errorf("without knowledge: %+v", c)
	}
	if c := unchanged(pool); c.Best != 5 {
		t.Errorf("of a pool: %+v", c)
	}
	if c := unchanged(own); c.Best != 6 || !c.Ambiguous || c.Connection != NoEvidence {
		t.Errorf("of clients with connections of their own: %+v", c)
	}
	// They may begin to share them.
	own.Add(Contradicts)
	if c := unchanged(own); c.Best != 5 {
		t.Errorf("after they have begun to share connections: %+v", c)
	}
}

func TestConnectionsAreLearntFromTheContentAlone(t *testing.T) {
	var own Connections
	for range 100 {
		own.Add(Agrees)
	}
	for name, c := range map[string]struct {
		own  int
		body string
		want Evidence
	}{
		"the same":            {3, `{"n":4}`, Agrees},
		"another":             {1, `{"n":4}`, Contradicts},
		"a save, or a change": {4, `{"n":4}`, NoEvidence},
		"not among the reads": {-1, `{"n":4}`, NoEvidence},
	} {
		for _, known := range []Connections{{}, own} { // what is known already doesn't confirm itself
			cs := counters(6)
			if c.own >= 0 {
				cs[c.own].Own = true
			}
			if got := Likeliest(cs, Sent{Body: []byte(c.body), Connections: known}); got.Connection != c.want {
				t.Errorf("%s: %+v, want %d", name, got, c.want)
			}
		}
	}
	cs := counters(6)
	cs[4].Own, cs[4].Written = true, true
	if got := Likeliest(cs, Sent{Body: []byte(`{"n":4}`)}); got.Connection != Contradicts {
		t.Errorf("who has written reads before the next change: %+v", got)
	}
	cs = counters(1)
	cs[0].Own = true
	if got := Likeliest(cs, Sent{Body: []byte(`{"n":1}`)}); got.Connection != NoEvidence {
		t.Errorf("one candidate: %+v", got)
	}
}
