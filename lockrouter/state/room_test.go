package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// shelf is a document with bounds.
type shelf struct {
	Doc
	most, bytes int64
	n           int
}

func (s *shelf) do(op Op) Result {
	if s.n++; op.Rid == "" {
		op.Rid = fmt.Sprint("r", s.n)
	}
	op.TTL, op.Mode, op.Class = 1000, Exclusive, Foreground
	op.Measure()
	results, _ := s.Apply(&Call{Lock: "/fs/_lock/tree", Kind: Tree, Proxy: "p", Ops: []Op{op}, Most: s.most, Bytes: s.bytes}, Clock{Now: 1000})
	return results[0]
}

// take acquires a path of its own until that is refused.
func (s *shelf) take(owner func(i int) string, client, note string) (int, Verdict) {
	for i := 0; ; i++ {
		v := s.do(Op{Do: Acquire, Owner: owner(i), Client: client, Path: fmt.Sprintf("/%s%d/", client, i), Note: note}).Verdict
		if v != Acquired {
			return i, v
		}
	}
}

func named(name string) func(int) string { return func(int) string { return name } }

func numbered(name string) func(int) string { return func(i int) string { return fmt.Sprint(name, i) } }

// leases are the bytes that the leases of a document take in it, with what is written of them for searches.
func (s *shelf) leases(t *testing.T) int64 {
	t.Helper()
	var n int64
	for _, part := range []any{s.Holds, s.Owners} {
		b, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		n += int64(len(b))
	}
	return n
}

func TestLeasesOfATreeTakeNoMoreBytesThanTheyMay(t *testing.T) {
	for name, note := range map[string]string{"plain": strings.Repeat("n", 1024), "escaped": strings.Repeat("\x01", 1024), "none": ""} {
		s := &shelf{most: 1 << 30, bytes: 200_000}
		refused := Acquired
		for client := range 1000 {
			_, refused = s.take(numbered(fmt.Sprint("o", client, strings.Repeat("<", 400))), fmt.Sprint("c", client), note)
			if refused == Large && len(s.Holds) > 0 {
				break
			}
		}
		if n := s.leases(t); n > s.bytes || n < s.bytes/2 || refused != Large {
			t.Errorf("%s: %d leases of %d bytes, at most %d: %s", name, len(s.Holds), n, s.bytes, refused)
		}
	}
}

func TestNobodyTakesAllOfATree(t *testing.T) {
	big := strings.Repeat("n", 1000)
	for name, c := range map[string]struct {
		most, bytes  int64
		owner        func(int) string
		client, note string
	}{
		"leases, by owner":  {80, 0, named("o"), "", ""},
		"leases, by client": {80, 0, numbered("o"), "k", ""},
		"bytes, by owner":   {0, 160_000, named("o"), "", big},
		"bytes, by client":  {0, 160_000, numbered("o"), "k", big},
	} {
		s := &shelf{most: c.most, bytes: c.bytes}
		n, v := s.take(c.owner, c.client, c.note)
		if v != Share || c.most > 0 && n != 70 || c.bytes > 0 && (s.leases(t) > c.bytes*7/8 || s.leases(t) < c.bytes*3/4) {
			t.Errorf("%s: %d leases of %d bytes: %s", name, n, s.leases(t), v)
		}
		for late := range 3 { // the later, the less, but something
			if n, v := s.take(named(fmt.Sprint("late", late)), fmt.Sprint("l", late), ""); n == 0 {
				t.Errorf("%s: the %d. late one: %s", name, late, v)
			}
		}
	}
}

func TestTheLastLeaseOfATreeIsForWhoHasNone(t *testing.T) {
	s := &shelf{most: 1, bytes: Bytes(1)}
	if n, v := s.take(named("o"), "k", ""); n != 1 || v != Full {
		t.Error(n, v)
	}
}

// TestANoteWithoutRoomCostsNobodyTheLease: leases get longer all the same, and don't grow.
func TestANoteWithoutRoomCostsNobodyTheLease(t *testing.T) {
	s := &shelf{bytes: 2000}
	var tokens []int64
	for i := range 3 {
		got := s.do(Op{Do: Acquire, Owner: fmt.Sprint("o", i), Path: fmt.Sprintf("/%d/", i), Note: "short"})
		tokens = append(tokens, got.Token)
	}
	long := strings.Repeat("n", 1024)
	for i, op := range []Op{
		{Do: Renew, Owner: "o0", Path: "/0/", Token: tokens[0], Note: long},
		{Do: Renew, Owner: "o1", Path: "/1/", Token: tokens[1], Note: long},
		{Do: Acquire, Owner: "o2", Path: "/2/", Note: long},
	} {
		beat := s.Beat
		if got := s.do(op); got.Verdict != Renewed && got.Verdict != Reentered {
			t.Errorf("%d: %+v", i, got)
		}
		if s.Holds[i].Beat != beat+1 || len(s.Holds[i].Note) > 5 && s.leases(t) > s.bytes {
			t.Errorf("%d: %+v", i, s.Holds[i])
		}
	}
	if n := s.leases(t); n > s.bytes {
		t.Errorf("%d bytes", n)
	}
	if got := s.do(Op{Do: Renew, Owner: "o1", Path: "/1/", Token: tokens[1], Note: "other"}); got.Verdict != Renewed || s.Holds[1].Note != "other" {
		t.Errorf("%+v, %+v", got, s.Holds[1])
	}
}
