package apply

import (
	"errors"
	"testing"
	"time"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/intake"
	"optimist/internal/intent"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// steps is a transform.
func steps(t *testing.T, text string) *edit.Transformer {
	t.Helper()
	list, err := edit.ParseSteps([]byte(text), tree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := edit.NewTransformer(list, tree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// change is a PUT of {"n":6} by a client that has read {"n":5}.
func change(t *testing.T, transform string) *Maker {
	t.Helper()
	m, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	ru := &rule.Rule{Name: "shop", Merger: m}
	if transform != "" {
		ru.Transform = steps(t, transform)
	}
	w := &Maker{Means: &Means{Now: func() time.Time { return time.Unix(0, 0).UTC() }}, Method: []byte("PUT"),
		Search: &base.Search{Question: base.Question{
			Request: &base.Request{Rule: ru, Op: &api.Op{Kind: api.Index}},
			Terms:   intake.Terms{Name: "alias", JSON: true},
			Sent:    []byte(`{"n":6}`),
		}}}
	w.Base = session.Base{Kind: session.KindRead, Numbers: numbers(4), View: []byte(`{"n":5}`), Stored: []byte(`{"n":5}`)}
	return w
}

func numbers(seq int64) doc.Numbers { return doc.Numbers{SeqNo: seq, PrimaryTerm: 1} }

const setsTag = `[{"op":"add","path":"/tag","value":"t"}]`

func TestADocumentIsMergedAndThenTransformed(t *testing.T) {
	in := change(t, setsTag).Document(doc.Numbers{})
	for current, want := range map[string]string{`{"n":5}`: `{"n":6,"tag":"t"}`, `{"n":5,"by":"b"}`: `{"n":6,"by":"b","tag":"t"}`} {
		cur := doc.Revision{Numbers: numbers(4), Source: []byte(current)}
		if current != `{"n":5}` {
			cur.Numbers = numbers(9)
		}
		if d, err := in.Next(cur); err != nil || !intent.Equal(d.Body, []byte(want), nil) {
			t.Errorf("in place of %s: %s, %v", current, d.Body, err)
		}
	}
}

func TestAnOwnGuardLetsNothingElseBeReplaced(t *testing.T) {
	in := change(t, "").Document(numbers(4))
	var moved *intent.MovedError
	if _, err := in.Next(doc.Revision{Numbers: numbers(5), Source: []byte(`{"n":5}`)}); !errors.As(err, &moved) {
		t.Errorf("got %v", err)
	}
}

func TestADocumentIsMadeOnlyWhereThereIsNone(t *testing.T) {
	in := change(t, setsTag).New([]byte(`{"n":1}`))
	if d, err := in.Next(doc.Revision{}); err != nil || !intent.Equal(d.Body, []byte(`{"n":1,"tag":"t"}`), nil) {
		t.Errorf("%s, %v", d.Body, err)
	}
}

func TestAPartIsMergedAtItsPathsAlone(t *testing.T) {
	w := change(t, "")
	w.Part = &patch.Request{Incoming: []byte(`{"n":6}`)}
	d, err := w.Partial([]byte(`{"n":6}`)).Next(doc.Revision{Numbers: numbers(9), Source: []byte(`{"n":5,"by":"b"}`)})
	if err != nil || !intent.Equal(d.Body, []byte(`{"n":6,"by":"b"}`), nil) {
		t.Errorf("%s, %v", d.Body, err)
	}
}

func TestTheTransformIsForThoseWhoSendDocuments(t *testing.T) {
	for kind, want := range map[api.Kind]bool{api.Index: true, api.IndexAuto: true, api.Create: true, api.Patch: true, api.Update: false, api.Delete: false} {
		w := change(t, setsTag)
		w.Op.Kind = kind
		if got := w.Transformer() != nil; got != want {
			t.Errorf("%v: %v", kind, got)
		}
	}
	w := change(t, setsTag)
	w.Op.Kind, w.Patch = api.Update, &patch.Request{}
	if w.Transformer() == nil {
		t.Error("an _update that is made here is a patch")
	}
	if w.Untransformed = true; w.Transformer() != nil {
		t.Error("the transform can't be applied")
	}
}

func TestStepsSeeTheWrite(t *testing.T) {
	w := change(t, "")
	w.Op.Kind, w.Fields = api.IndexAuto, []wire.Field{{Name: []byte("X-Team"), Value: []byte("blue")}}
	in := w.Inputs([]byte(`{"n":7}`))
	team, found := in.Header("x-team")
	if in.Op != "index" || in.Method != "PUT" || in.Index != "alias" || string(in.Incoming) != `{"n":6}` || string(in.Base) != `{"n":5}` ||
		string(in.Current) != `{"n":7}` || !found || string(team) != "blue" || !in.Now.Equal(time.Unix(0, 0)) {
		t.Errorf("%+v, team %s", in, team)
	}
	w.Patch = &patch.Request{Incoming: []byte(`[{"op":"remove","path":"/n"}]`)}
	if in = w.Inputs(nil); in.Incoming != nil {
		t.Errorf("operations are no document: %s", in.Incoming)
	}
}

// The part leaves the list out. So it doesn't show whether its client has seen the others' entry, and the 500.
func TestAPartOfAGuessedBaseShowsNothingOfWhatItLeavesOut(t *testing.T) {
	m, err := merge.New(merge.Sent, []merge.PathRule{{Path: "/n", Strategy: merge.Sum}})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 { // so small steps are usual
		if _, err := m.Guessing().Merge([]byte(`{"n":0}`), []byte(`{"n":1}`), []byte(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	w := change(t, "")
	w.Rule.Merger, w.Base.Guessed, w.Base.View = m, true, []byte(`{"n":0,"tx":[]}`)
	w.Part = &patch.Request{Incoming: []byte(`{"n":300}`)}
	d, err := w.Partial([]byte(`{"n":300,"tx":[]}`)).Next(doc.Revision{Numbers: numbers(9), Source: []byte(`{"n":500,"tx":["A"]}`)})
	if err != nil || string(d.Body) != `{"n":500,"tx":["A"]}` || !d.Echo {
		t.Errorf("%s, echo %t, %v", d.Body, d.Echo, err)
	}
}
