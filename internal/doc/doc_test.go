package doc

import "testing"

func TestCloneIsEqual(t *testing.T) {
	for _, r := range []Ref{{}, {ID: "x"}, {Index: "i", Routing: "ro", ID: "id1"}, {Index: "i", ID: "é"}} {
		if got := r.Clone(); got != r {
			t.Errorf("%+v, want %+v", got, r)
		}
	}
}
