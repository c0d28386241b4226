package watch

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const page = `{"_scroll_id":"x","took":1,"_shards":{"hits":{"hits":[{"_seq_no":0}]}}, "hits" : {"total":{"value":2},"hits" :[ {"_index":"shop",` +
	`"_id":"1","_version":3,"_seq_no":7,"_primary_term":2,"_score":1.0,"_source":{"_seq_no": 1,"a":"}]\"{"},"inner_hits":{"x":{"hits":{"hits":[{"_seq_no":4}]}}}},` +
	"\n{\"_id\":\"2\",\"_source\":{},\n \"_seq_no\":8,\n \"_primary_term\":2}  ]},\"aggregations\":{\"hits\":{\"hits\":[{\"_seq_no\":9}]}}}\n"

const bare7 = `{"_scroll_id":"x","took":1,"_shards":{"hits":{"hits":[{"_seq_no":0}]}}, "hits" : {"total":{"value":2},"hits" :[ {"_index":"shop",` +
	`"_id":"1","_score":1.0,"_source":{"_seq_no": 1,"a":"}]\"{"},"inner_hits":{"x":{"hits":{"hits":[{"_seq_no":4}]}}}},` +
	"\n{\"_id\":\"2\",\"_source\":{}}  ]},\"aggregations\":{\"hits\":{\"hits\":[{\"_seq_no\":9}]}}}\n"

// filtered is what comes of an answer that comes in pieces of some bytes.
func filtered(f *filter, answer string, size int) (out string) {
	for answer != "" {
		n := min(size, len(answer))
		out += string(f.change([]byte(answer[:n]), false))
		answer = answer[n:]
	}
	return out + string(f.change(nil, true))
}

func TestWhatWasAddedToHitsIsTakenOutHoweverTheyCome(t *testing.T) {
	for size := 1; size <= len(page); size++ {
		var hits []string
		f := &filter{hit: func(hit []byte) []byte {
			hits = append(hits, string(hit))
			return added{numbers: true, version: true}.without(hit)
		}}
		if got := filtered(f, page, size); got != bare7 {
			t.Fatalf("in pieces of %d:\n%s\nwant\n%s", size, got, bare7)
		}
		if len(hits) != 2 || gjson.Get(hits[0], "_seq_no").Int() != 7 || gjson.Get(hits[1], "_seq_no").Int() != 8 {
			t.Fatalf("in pieces of %d the hits are %q", size, hits)
		}
	}
}

func TestMembersAreTakenOutWhereverTheyStand(t *testing.T) {
	all := added{numbers: true, version: true}
	for hit, want := range map[string]string{
		`{}`: `{}`,
		`{"_seq_no":1,"_primary_term":2,"_version":3}`:       `{}`,
		`{"_id":"1","_seq_no":1,"_primary_term":2}`:          `{"_id":"1"}`,
		`{"_seq_no":1,"_id":"1","_primary_term":2}`:          `{"_id":"1"}`,
		`{ "_seq_no" : 1 , "_id" : "1" }`:                    `{ "_id" : "1" }`,
		`{"a":{"_seq_no":1},"b":["_seq_no",{"_version":1}]}`: `{"a":{"_seq_no":1},"b":["_seq_no",{"_version":1}]}`,
	} {
		if got := string(all.without([]byte(hit))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := string(added{numbers: true}.without([]byte(`{"_version":3,"_seq_no":1}`))); got != `{"_version":3}` {
		t.Error(got)
	}
}

// What isn't the answer to a search passes as it is, and what is much is passed on as it comes.
func TestAFilterHoldsBackNoMoreThanAHit(t *testing.T) {
	f := &filter{hit: func(hit []byte) []byte { return hit }}
	begin := `{"hits":{"hits":[{"_id":"1"},`
	if got := string(f.change([]byte(begin), false)); got != begin {
		t.Errorf("%q of %q has been passed on", got, begin)
	}
	if got := string(f.change([]byte(`{"_id":`), false)) + string(f.change([]byte(`"2"}`), false)); got != `{"_id":"2"}` {
		t.Errorf("%q has been passed on", got)
	}
	if got := string(f.change([]byte(`]},"aggregations":{`), false)); got != `]},"aggregations":{` {
		t.Errorf("%q has been passed on", got)
	}
	if got := f.change([]byte(`"a"`), false); string(got) != `"a"` {
		t.Errorf("%q has been passed on", got)
	}
}

// However much stands before the hits, they are taken out. If it is too much, or one of them is, they pass as they are, which is noted.
func TestHitsThatPassAsTheyAreAreNoted(t *testing.T) {
	for _, c := range []struct {
		before, in int // bytes before the hits, and in one of them
		found      int
		lost       bool
	}{{10, 10, 2, false}, {5 * largeHit, 10, 2, false}, {5 * largeHit, 5 * largeHit, 2, false}, {maxHit + largeHit, 10, 0, true}, {10, maxHit, 1, true}} {
		found, lost := 0, 0
		f := &filter{lost: func() { lost++ }, hit: func(hit []byte) []byte { found++; return hit }}
		answer := []byte(`{"error":"` + strings.Repeat("x", c.before) + `","hits":{"hits":[{"_id":"1"},{"a":"` + strings.Repeat("x", c.in) + `"}]}}`)
		var out []byte
		for piece := range slices.Chunk(answer, 32<<10) {
			out = append(out, f.change(piece, false)...)
		}
		if out = append(out, f.change(nil, true)...); !bytes.Equal(out, answer) {
			t.Errorf("%+v: the answer is another", c)
		}
		if found != c.found || (lost == 1) != c.lost || lost > 1 {
			t.Errorf("%+v: %d hits, noted %d times", c, found, lost)
		}
		if f.moved > len(answer) {
			t.Errorf("%+v: %d bytes were moved", c, f.moved)
		}
	}
}

// Whatever comes, and however: who changes no hit changes nothing.
func FuzzFilter(f *testing.F) {
	f.Add([]byte(page), 7)
	f.Add([]byte(`{"hits":{"hits":[{"_id":"1"`), 3)
	f.Add([]byte(`{"hits":[{"hits":[{}]}]}`), 1)
	f.Fuzz(func(t *testing.T, answer []byte, size int) {
		take := &filter{hit: func(hit []byte) []byte { return hit }}
		if got := filtered(take, string(answer), max(size%64, 1)); !bytes.Equal([]byte(got), answer) {
			t.Errorf("%q has become %q", answer, got)
		}
	})
}

// A large hit that comes in many pieces isn't moved with each of them: twice the size is twice the work.
func TestALargeHitIsNotMovedWithEachPiece(t *testing.T) {
	const piece = 1 << 10
	for _, size := range []int{64 << 10, 128 << 10, 1 << 20} {
		f := &filter{hit: func(hit []byte) []byte { return hit }}
		answer := []byte(`{"hits":{"hits":[{"_id":"1","_source":{"a":"` + strings.Repeat("a", size) + `"}},{"_id":"2"}]}}`)
		var out []byte
		for at := 0; at < len(answer); at += piece {
			end := min(at+piece, len(answer))
			out = append(out, f.change(answer[at:end], end == len(answer))...)
		}
		if !bytes.Equal(out, answer) {
			t.Errorf("%d bytes have become %d others", len(answer), len(out))
		}
		if f.moved > size {
			t.Errorf("%d bytes were moved for a hit of %d", f.moved, size)
		}
	}
}

// Whatever isn't taken out as a hit is looked at, however it comes.
func TestDocumentsBesideTheHitsAreSeenHoweverTheyCome(t *testing.T) {
	for answer, want := range map[string]int{
		`{"took":1,"hits":{"hits":[{"_source":{"_source":1}}, {"_source":{}}]}}`:                               0,
		`{"suggest":{"_source":{}},"hits":{"hits":[{"_source":{}}]},"aggregations":{"a":{"_source":{"b":1}}}}`: 2,
		`{"hits":{"hits":[]},"aggregations":{"by_source":{"value":"_source"}}}`:                                1,
		`{"hits":{"hits":[1,{"_source":{}}]}}`:                                                                 1,
		`{"responses":[{"hits":{"hits":[{"_source":{}},{"_source":{}}]}},{"hits":{"hits":[{"_source":{}}]}}]}`: 3,
	} {
		for size := 1; size <= len(answer); size++ {
			var s seeker
			n := 0
			f := filter{hit: func(hit []byte) []byte { return hit }, rest: func(piece []byte) { n += s.count(piece) }}
			var out []byte
			for rest := answer; rest != ""; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				out = append(out, f.change([]byte(piece), rest == "")...)
			}
			if n != want || string(out) != answer {
				t.Errorf("in pieces of %d: %d documents in %s", size, n, out)
			}
		}
	}
}
