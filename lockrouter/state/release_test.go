package state

import (
	"fmt"
	"testing"
)

// on carries operations out on a document, in one call.
func on(d *Doc, kind Kind, now int64, ops ...Op) []Result {
	results, _ := d.Apply(&Call{Lock: "/x", Kind: kind, Proxy: "p", Ops: ops, Bound: 3, Grace: 100}, Clock{Now: now})
	return results
}

func want(owner, path string) Op {
	return Op{Do: Acquire, Owner: owner, Rid: owner + path, Path: path, Mode: Exclusive, Class: Foreground, TTL: 1000}
}

// TestATokenOfAPromisedLeaseIsNobodyElses: it isn't one of the document's holders yet, and was taken for one that had ended.
func TestATokenOfAPromisedLeaseIsNobodyElses(t *testing.T) {
	d := new(Doc)
	next := want("b", "")
	next.Wait, next.Left, next.Chain = true, 500, 3
	results := on(d, Global, 1, want("a", ""), next)
	if results[1].Verdict != Promised {
		t.Fatal(results)
	}
	for _, do := range []Verb{Renew, Release} {
		if got := on(d, Global, 2, Op{Do: do, Owner: "c", Token: results[1].Token}); got[0].Verdict != NotOwner {
			t.Errorf("%s: %v", do, got)
		}
	}
	if got := on(d, Global, 3, Op{Do: Release, Owner: "b", Token: results[1].Token}); got[0].Verdict != Released {
		t.Error(got)
	}
}

// TestATokenIsGoodForItsOwnPathOnly: two leases of one owner in one tree, and a token sent to the wrong one of them.
func TestATokenIsGoodForItsOwnPathOnly(t *testing.T) {
	d := new(Doc)
	results := on(d, Tree, 1, want("o", "/a/"), want("o", "/b/"))
	for _, do := range []Verb{Renew, Release} {
		if got := on(d, Tree, 2, Op{Do: do, Owner: "o", Path: "/b/", Token: results[0].Token}); got[0].Verdict != Missing {
			t.Errorf("%s: %v", do, got)
		}
		if got := on(d, Tree, 2, Op{Do: do, Owner: "other", Path: "/b/", Token: results[0].Token}); got[0].Verdict != NotOwner {
			t.Errorf("%s: %v", do, got)
		}
	}
	if len(d.Holds) != 2 {
		t.Errorf("%+v", d.Holds)
	}
}

// TestACallOfReleasesCanBeRepeated: its answer was lost, and what it has released isn't what has lapsed.
func TestACallOfReleasesCanBeRepeated(t *testing.T) {
	d := new(Doc)
	var ops []Op
	for i := range 64 {
		path := fmt.Sprintf("/%d/", i)
		results := on(d, Tree, 1, want("o", path))
		ops = append(ops, Op{Do: Release, Owner: "o", Path: path, Token: results[0].Token})
	}
	for range 2 {
		for i, s := range on(d, Tree, 2, ops...) {
			if s.Verdict != Released {
				t.Fatalf("%d: %v", i, s)
			}
		}
	}
}
