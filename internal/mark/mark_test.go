package mark

import (
	"strconv"
	"strings"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/stamp"
)

func at(seq int64) doc.Numbers { return doc.Numbers{SeqNo: seq, PrimaryTerm: 3} }

func TestATrailComesBackAsItWasPut(t *testing.T) {
	document := stamp.DocumentOf("u", "", "1")
	for name, trail := range map[string]Trail{
		"none":  nil,
		"new":   {{ID: 7, Document: document, New: true}},
		"over":  {{ID: 7, Document: document, New: true}, {ID: 9, Document: document, Over: at(0)}, {ID: 8, Document: document, Over: at(1 << 60)}},
		"blind": {{ID: 1, Document: 0}},
	} {
		for _, document := range []string{`{}`, ` { } `, `{"a":1}`, "{\"a\" : 1.50 ,\n\"b\":[1] }\n"} {
			put, ok := Put([]byte(document), "_w", trail)
			if !ok {
				t.Fatal(name, document)
			}
			again, ok := Put(put, "_w", trail)
			if !ok || string(again) != string(put) {
				t.Errorf("%s: put twice it is %s, once %s", name, again, put)
			}
			rest, got := Take(put, "_w")
			if string(rest) != document || len(got) != len(trail) {
				t.Errorf("%s: %q %v of %s", name, rest, got, put)
			}
			for i := range got {
				if got[i] != trail[i] {
					t.Errorf("%s: %v", name, got)
				}
			}
		}
	}
	if put, ok := Put([]byte(`[1]`), "_w", nil); ok || put != nil {
		t.Errorf("%s", put)
	}
}

func TestWhatIsNoMarkIsLeftOut(t *testing.T) {
	const good = `"0000000007-0000000009-4-1"`
	for _, value := range []string{`[` + good + `,1,null,{},"x","0000000007","0000000007-0000000009-4","0000000007-0000000009--1-1",` +
		`"0000000007-0000000009-4-0","0000000007-0000000009-4-1-1","0000000000-0000000009-new","0000000007-0000000009-old"]`} {
		rest, got := Take([]byte(`{"a":1,"_w":`+value+`,"b":2}`), "_w")
		if string(rest) != `{"a":1,"b":2}` || len(got) != 1 || got[0].ID != 7 {
			t.Errorf("%s %v", rest, got)
		}
	}
	for _, value := range []string{`null`, `1`, `{}`, `"0000000007-new"`, `[[` + good + `]]`} {
		if rest, got := Take([]byte(`{"_w":`+value+`}`), "_w"); string(rest) != `{}` || len(got) != 0 {
			t.Errorf("%s: %s %v", value, rest, got)
		}
	}
}

func TestATrailKeepsTheNewestMarks(t *testing.T) {
	var trail Trail
	for i := range 3 * Most {
		before := len(trail)
		next := trail.With(Mark{ID: stamp.ID(i + 1)})
		if len(trail) != before || len(next) != min(i+1, Most) || next[len(next)-1].ID != stamp.ID(i+1) {
			t.Fatal(i, next)
		}
		trail = next
	}
	if trail[0].ID != 2*Most+1 {
		t.Error(trail)
	}
	all := make([]string, 5*Most)
	for i := range all {
		all[i] = `"000000000` + strconv.Itoa(i%9+1) + `-0000000000"`
	}
	if _, got := Take([]byte(`{"_w":[`+strings.Join(all, ",")+`]}`), "_w"); len(got) != Most {
		t.Error("a client can make the list longer:", len(got))
	}
}

// A revision is replaced once: who finds another write in its place knows that its own wasn't applied, nor will be.
func TestOnlyAnotherWriteInItsPlaceExcludesAWrite(t *testing.T) {
	a, b := stamp.ID(100), stamp.ID(200)
	mine := Mark{ID: 1, Document: a, Over: at(5)}
	for name, c := range map[string]struct {
		trail    Trail
		found    bool
		excluded bool
	}{
		"nothing":                           {nil, false, false},
		"mine":                              {Trail{mine}, true, false},
		"mine, and others on top":           {Trail{mine, {ID: 2, Document: a, Over: at(6)}}, true, false},
		"another's in its place":            {Trail{{ID: 2, Document: a, Over: at(5)}}, false, true},
		"another's after that":              {Trail{{ID: 2, Document: a, Over: at(6)}}, false, false},
		"another's, in another term":        {Trail{{ID: 2, Document: a, Over: doc.Numbers{SeqNo: 5, PrimaryTerm: 4}}}, false, false},
		"one of a document that was copied": {Trail{{ID: 2, Document: b, Over: at(5)}}, false, false},
		"one that was written blindly":      {Trail{{ID: 2, Document: a}}, false, false},
	} {
		if got := c.trail.Find([]Mark{mine}) >= 0; got != c.found {
			t.Errorf("%s: found %v", name, got)
		}
		if got := c.trail.Excludes([]Mark{mine}); got != c.excluded {
			t.Errorf("%s: excluded %v", name, got)
		}
	}
	for name, w := range map[string]Mark{
		"of an index that isn't known": {ID: 1, Over: at(5)}, "a create": {ID: 1, Document: a, New: true}, "a blind one": {ID: 1, Document: a},
	} {
		if (Trail{{ID: 2, Document: w.Document, Over: w.Over, New: w.New}}).Excludes([]Mark{w}) {
			t.Errorf("%s: what was in its place may have been there before", name)
		}
	}
	two := []Mark{mine, {ID: 3, Document: a, Over: at(6)}}
	if (Trail{{ID: 2, Document: a, Over: at(5)}}).Excludes(two) {
		t.Error("one of two is still open")
	}
}

// What stands elsewhere is the client's own, though it has the field's name.
func TestMarksAreDroppedOnlyFromTheNamedMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"doc":{"a":1,"_w":["x"]},"upsert":{"_w":[]}}`: `{"doc":{"a":1},"upsert":{}}`,
		`{"doc":{"in":{"_w":1}},"_w":2}`:                `{"doc":{"in":{"_w":1}},"_w":2}`,
		`{"script":{"_w":1}}`:                           `{"script":{"_w":1}}`,
		`{"doc":`:                                       `{"doc":`,
		``:                                              ``,
	} {
		if got := Drop([]byte(text), "_w", "doc", "upsert"); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
