package intent

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"optimist/internal/doc"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// partial is a change of part by a client that has seen view, at revision 5.
func partial(t *testing.T, view, part string, rules ...merge.PathRule) *Partial {
	t.Helper()
	p := &Partial{Base: Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, View: []byte(view), Stored: true}, Part: Part(part), Merger: merger(t, rules...)}
	made, err := p.Part.in([]byte(view), &edit.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	p.Made = made
	return p
}

func TestAPartIsReplayedForItsPathsOnly(t *testing.T) {
	sum := merge.PathRule{Path: "/n", Strategy: merge.Sum}
	for name, c := range map[string]struct{ view, part, cur, sent, body, overwrote string }{
		"a list":                         {`{"l":[1],"by":"a"}`, `{"l":[1,2]}`, `{"l":[1,3],"by":"b"}`, `{"l":[1,3,2]}`, `{"l":[1,3,2],"by":"b"}`, ""},
		"a sum":                          {`{"n":1,"x":1}`, `{"n":2}`, `{"n":7,"x":2}`, `{"n":8}`, `{"n":8,"x":2}`, ""},
		"a value":                        {`{"s":"new"}`, `{"s":"open"}`, `{"s":"closed"}`, `{"s":"open"}`, `{"s":"open"}`, "/s"},
		"what it repeats isn't changed":  {`{"s":"new","n":1}`, `{"s":"new","n":2}`, `{"s":"closed","n":1}`, `{"s":"closed","n":2}`, `{"s":"closed","n":2}`, ""},
		"what others took out":           {`{"s":"new","n":1}`, `{"s":"new","n":2}`, `{"n":1}`, `{"n":2}`, `{"n":2}`, ""},
		"inside objects":                 {`{"o":{"a":1,"b":1}}`, `{"o":{"a":2}}`, `{"o":{"a":1,"b":2,"c":3}}`, `{"o":{"a":2}}`, `{"o":{"a":2,"b":2,"c":3}}`, ""},
		"an object that others replaced": {`{"o":{"a":1,"b":1}}`, `{"o":{"a":2}}`, `{"o":5}`, `{"o":{"a":2}}`, `{"o":{"a":2}}`, "/o"},
		"an object in place of a value":  {`{"o":5}`, `{"o":{"a":2}}`, `{"o":{"c":1}}`, `{"o":{"a":2}}`, `{"o":{"a":2,"c":1}}`, "/o"},
		"what is null":                   {`{"a":1}`, `{"a":null}`, `{"a":1,"b":1}`, `{"a":null}`, `{"a":null,"b":1}`, ""},
		"names as they are spelled":      {`{"é":1}`, `{"\u00e9":2}`, `{"é":1,"b":1}`, `{"\u00e9":2}`, `{"é":2,"b":1}`, ""},
		"nothing but others' changes":    {`{"l":[1]}`, `{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[1,2]}`, ""},
		"nothing at all":                 {`{"l":[1]}`, `{}`, `{"l":[1,2]}`, `{}`, `{"l":[1,2]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := partial(t, c.view, c.part, sum)
			d, err := p.Next(revision(6, c.cur))
			if err != nil || string(d.Part) != c.sent || !Equal(d.Body, []byte(c.body), nil) || strings.Join(d.Overwrote, " ") != c.overwrote || d.AsSent || d.Unchanged {
				t.Errorf("%s, which makes %s, overwrites %v, %v", d.Part, d.Body, d.Overwrote, err)
			}
			if d, err = p.Next(revision(5, c.view)); err != nil || string(d.Part) != c.part || !d.AsSent {
				t.Errorf("at its base: %s, %v", d.Part, err)
			}
			if d, err = p.Next(revision(5, "")); err != nil || string(d.Part) != c.part || !d.AsSent {
				t.Errorf("at its base's numbers: %s, %v", d.Part, err)
			}
			if d, err = (Rebased{p}).Apply(revision(6, c.cur), nil); err != nil || !Equal(d.Body, []byte(c.body), nil) ||
				strings.Join(d.Overwrote, " ") != c.overwrote || !d.Merged() {
				t.Errorf("as an edit: %+v, %v", d, err)
			}
			if d, err = (Rebased{p}).Apply(revision(5, c.view), nil); err != nil || !Equal(d.Body, p.Made, nil) || d.Merged() {
				t.Errorf("as an edit of its base: %+v, %v", d, err)
			}
		})
	}
}

func TestAPartNeedsWhatItsClientHasSeen(t *testing.T) {
	at := doc.Numbers{SeqNo: 5, PrimaryTerm: 1}
	first := []byte(`{"l":[1]}`)
	for name, c := range map[string]struct {
		p     Partial
		cur   doc.Revision
		error error
		body  string
	}{
		"numbers alone, moved":     {Partial{Base: Base{Numbers: at, Stored: true}}, revision(6, `{}`), ErrUnmergeable, ""},
		"numbers alone":            {Partial{Base: Base{Numbers: at, Stored: true}}, revision(5, ""), nil, ""},
		"another revision, unread": {*partial(t, `{}`, `{"l":[2]}`), revision(6, ""), ErrUnread, ""},
		"gone":                     {*partial(t, `{}`, `{"l":[2]}`), doc.Revision{}, doc.ErrMissing, ""},
		"gone, with an upsert":     {Partial{Base: Base{Numbers: at, Stored: true}, Initial: first}, doc.Revision{}, ErrDeleted, ""},
		"gone, and made again":     {Partial{Base: Base{Numbers: at, Stored: true}, Initial: first, Recreate: true}, doc.Revision{}, nil, `{"l":[1]}`},
		"absent, and made":         {Partial{Base: Base{Absent: true}, Initial: first, Made: first}, doc.Revision{}, nil, `{"l":[1]}`},
		"absent, and an upsert":    {Partial{Base: Base{Absent: true}, Initial: []byte(`{"u":1}`), Made: first}, doc.Revision{}, nil, `{"u":1}`},
		"made by their upsert":     {Partial{Base: Base{Absent: true}, Initial: []byte(`{"u":1}`), Made: first}, revision(1, `{"u":1}`), nil, `{"u":1,"l":[1]}`},
		"made by others meanwhile": {Partial{Base: Base{Absent: true}, Initial: first, Made: first}, revision(1, `{"l":[2],"b":1}`), nil, `{"l":[2,1],"b":1}`},
	} {
		if c.p.Part == nil {
			c.p.Part = Part(first)
		}
		c.p.Merger = merger(t)
		d, err := c.p.Next(c.cur)
		if !sameError(err, c.error) || string(d.Body) != c.body {
			t.Errorf("%s: %s %v", name, d.Body, err)
		}
	}
}

func TestAPartMayBeRepeatedAsADocumentMay(t *testing.T) {
	p := partial(t, `{"n":1,"s":"a"}`, `{"s":"b"}`, merge.PathRule{Path: "/n", Strategy: merge.Sum})
	counted := partial(t, `{"n":1,"s":"a"}`, `{"n":2}`, merge.PathRule{Path: "/n", Strategy: merge.Sum})
	if cur := revision(6, `{"n":9,"s":"a"}`); !p.Repeatable(nil, cur) || counted.Repeatable(nil, cur) || p.Repeatable(nil, doc.Revision{}) {
		t.Error("a value may be set twice, and a number not be added twice")
	}
	if (&Partial{Base: Base{Numbers: p.Base.Numbers}}).Repeatable(nil, revision(6, `{}`)) {
		t.Error("what isn't known may not be repeated")
	}
	created := &Partial{Base: Base{Absent: true}, Made: []byte(`{"s":"b"}`), Initial: []byte(`{"n":1}`), Merger: p.Merger}
	if created.Repeatable(&Draft{Body: created.Initial}, revision(6, `{"n":1}`)) || !created.Repeatable(&Draft{Part: created.Made}, revision(6, `{"n":1}`)) {
		t.Error("in the document that an upsert has perhaps made, the part would count, too")
	}
}

// What the engine makes of the part that goes is what a merge of whole documents makes, but that a part takes nothing out; and what the part
// doesn't hold stays.
func TestAReplayedPartSaysWhatAMergeOfDocumentsSays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := merger(t, merge.PathRule{Path: "/a", Strategy: merge.Sum}, merge.PathRule{Path: "/b", Strategy: merge.Union}, merge.PathRule{Path: "/c", Strategy: merge.Current})
	for range 5000 {
		view, cur, part := object(r, 0), object(r, 0), object(r, 0)
		p := partial(t, view, part)
		p.Merger = m
		d, err := p.Next(revision(6, cur))
		whole, refusal := m.Merge([]byte(view), p.Made, []byte(cur))
		if (err == nil) != (refusal == nil) {
			t.Fatalf("%v, and of documents %v", err, refusal)
		} else if err != nil {
			continue
		}
		want, err := edit.EngineMerge([]byte(cur), p.Part.of(whole.Doc), tree.Limits{})
		if err != nil || !Equal(d.Body, want, nil) {
			t.Fatalf("%s in %s: %s, want %s, %v", part, cur, d.Body, want, err)
		}
		again, err := edit.EngineMerge(d.Body, d.Part, tree.Limits{})
		if err != nil || !Equal(again, d.Body, nil) {
			t.Fatalf("%s isn't in %s: %v", d.Part, d.Body, err)
		}
		if flat := !strings.Contains(view+cur+part, ":{"); flat && !Equal(d.Body, whole.Doc, nil) {
			t.Fatalf("%s of %s in %s: %s, and of documents %s", part, view, cur, d.Body, whole.Doc)
		}
	}
}

// object is a small document of few keys, so that two of them meet.
func object(r *rand.Rand, depth int) string {
	var members []string
	for _, key := range []string{"a", "b", "c", "d"} {
		values := []string{"1", "2", "null", `"x"`, "[1]", "[1,2]", "[2]", "{}"}
		switch k := r.IntN(len(values) + 6); {
		case k < len(values):
			members = append(members, fmt.Sprintf("%q:%s", key, values[k]))
		case k < len(values)+3 && depth < 2:
			members = append(members, fmt.Sprintf("%q:%s", key, object(r, depth+1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
