package journal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/rule"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// page remembers what was noted.
type page struct {
	Journal
	noted []undo.Write
	said  string // what became of it
}

func (p *page) Note(_ context.Context, w *undo.Write) (undo.Place, error) {
	p.noted = append(p.noted, *w)
	return undo.Place{}, nil
}

func (p *page) Applied(undo.Place, doc.Revision) { p.said += "applied " }

func (p *page) Wrote(any, doc.Ref, doc.Numbers) {}

func (p *page) Failed(context.Context, undo.Place) error {
	p.said += "failed "
	return nil
}

// engine has no document, or one. It shows each client all of every document, or none of them.
type engine struct {
	catalog.Engine
	doc    doc.Revision
	closed bool
}

func (e *engine) SeesWhole(context.Context, es.Caller, string, string) (bool, error) {
	return !e.closed, nil
}

func (e *engine) Fetch(context.Context, es.Caller, es.Document) (doc.Revision, error) {
	if !e.doc.Known() {
		return e.doc, doc.ErrMissing
	}
	return e.doc, nil
}

func numbers(seq int64) doc.Numbers { return doc.Numbers{SeqNo: seq, PrimaryTerm: 1} }

// entry is a write in place of the revision that its maker knows.
func entry(p *page) *Entry {
	e := &Entry{Journal: p, Guard: numbers(7), Cur: doc.Revision{Numbers: numbers(7), Source: []byte(`{"n":1}`)}, After: []byte(`{"n":2}`),
		Search: &base.Search{Question: base.Question{
			Request: &base.Request{Rule: &rule.Rule{Name: "shop"}, Op: &api.Op{Kind: api.Index}},
			Terms:   intake.Terms{JSON: true, Doc: es.Document{Ref: doc.Ref{Index: "shop", ID: "7"}}},
		}}}
	of(e, &engine{})
	_, _ = e.Bases.Catalog.SeesWhole(context.Background(), e.Asker(), e.Name, "") // from now on that is known
	return e
}

// of puts an entry before an engine.
func of(e *Entry, engine *engine) {
	e.Bases = &base.Finder{Engine: engine, Catalog: catalog.New(catalog.Options{Engine: engine})}
}

func TestAWriteIsNotedWithTheDocumentBeforeAndAfter(t *testing.T) {
	p := &page{}
	if err := entry(p).Note(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := entry(p)
	made.Guard, made.Cur = doc.Numbers{}, doc.Revision{}
	removed := entry(p)
	removed.Remove = true
	for _, e := range []*Entry{made, removed} {
		if err := e.Note(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][2]string{{`{"n":1}`, `{"n":2}`}, {"", `{"n":2}`}, {`{"n":1}`, ""}} {
		if w := p.noted[i]; string(w.Before) != want[0] || string(w.After) != want[1] || w.Rule != "shop" || w.Ref.ID != "7" {
			t.Errorf("noted %+v, want %s", w, want)
		}
	}
}

func TestAWriteThatCanNotBeUndoneIsNotNoted(t *testing.T) {
	for want, change := range map[string]func(*Entry){
		"ingest pipeline":  func(e *Entry) { e.Pipeline = true },
		"data stream":      func(e *Entry) { e.Index.DataStream = "logs" },
		"may not ask":      func(e *Entry) { e.Index.Unknown = "metadata" },
		"_source whole":    func(e *Entry) { e.Index.Partial = true },
		"isn't JSON":       func(e *Entry) { e.JSON = false },
		"has a type":       func(e *Entry) { e.Op.Typed, e.Op.Type = true, []byte("book") },
		"can't be guarded": func(e *Entry) { e.AsPart = true },
		"be guarded":       func(e *Entry) { e.Remove, e.Guard = true, doc.Numbers{} },
	} {
		p := &page{}
		e := entry(p)
		change(e)
		err := e.Note(t.Context())
		var refused *undo.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, want) || len(p.noted) != 0 {
			t.Errorf("%s: %v, noted %v", want, err, p.noted)
		}
	}
}

// TestACreateIsNotedOnlyForWhoMayMakeTheDocument: a rollback takes a document like the one of an unfinished create for the create's own.
func TestACreateIsNotedOnlyForWhoMayMakeTheDocument(t *testing.T) {
	var refused *undo.RefusedError
	for name, try := range map[string]struct {
		engine engine
		is     func(error) bool
	}{
		"the client may not write":  {engine{closed: true}, func(err error) bool { return errors.As(err, &refused) }},
		"there is a document":       {engine{doc: doc.Revision{Numbers: numbers(7)}}, func(err error) bool { return errors.Is(err, doc.ErrConflict) }},
		"it may, and there is none": {engine{}, func(err error) bool { return err == nil }},
	} {
		p := &page{}
		e := entry(p)
		e.Guard, e.Cur = doc.Numbers{}, doc.Revision{}
		of(e, &try.engine)
		if err := e.Note(t.Context()); !try.is(err) || (len(p.noted) == 1) != (err == nil) {
			t.Errorf("%s: %v, noted %v", name, err, p.noted)
		}
	}
}

// TestWhatIsNotAppliedIsStoredAtOnce: another process may roll back.
func TestWhatIsNotAppliedIsStoredAtOnce(t *testing.T) {
	for _, try := range []struct {
		status  int
		err     error
		certain bool
		want    string
	}{
		{200, nil, true, "applied "}, {201, nil, true, "applied "}, {400, nil, true, "failed "}, {401, nil, false, "failed "},
		{403, nil, true, "failed "}, {404, nil, true, "failed "}, {409, nil, true, "failed "}, {409, nil, false, ""},
		{429, nil, true, "failed "}, {500, nil, true, ""}, {503, nil, true, ""},
		{0, upstream.NotSent, true, "failed "}, {0, delivery.ErrUnknownOutcome, true, ""},
	} {
		p := &page{}
		e := entry(p)
		e.at = undo.Place{Page: 1}
		var res *upstream.Response
		if try.err == nil {
			res = enginetest.Response(try.status, `{"result":"updated"}`)
		}
		if e.Answered(t.Context(), res, try.err, try.certain); p.said != try.want {
			t.Errorf("%d, %v, certain %v: %q; want %q", try.status, try.err, try.certain, p.said, try.want)
		}
	}
}

// fullPage refuses each write, after it has chosen a place for it.
type fullPage struct{ page }

func (*fullPage) Note(context.Context, *undo.Write) (undo.Place, error) {
	return undo.Place{Nth: 1}, undo.ErrFull
}

// The place on a page that wasn't stored is none: another write's note may be there, or come there.
func TestOfAWriteThatIsNotNotedThereIsNothingToTell(t *testing.T) {
	p := &fullPage{}
	e := entry(&p.page)
	e.Journal = p
	err := e.Note(t.Context())
	if e.Answered(t.Context(), nil, err, true); !errors.Is(err, undo.ErrFull) || p.said != "" {
		t.Errorf("%v, %q", err, p.said)
	}
}

func TestARefusalNamesWhatCanBeSentInstead(t *testing.T) {
	auto, put := &api.Op{Kind: api.IndexAuto}, &api.Op{Kind: api.Index}
	for want, err := range map[string]error{
		"give it an id": Passed(auto, ""),
		"(blind)":       Passed(put, "blind"),
		"a `doc`":       ForEngine(),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := error(&MovedError{"moved"}); !errors.Is(err, doc.ErrConflict) || err.Error() != "moved" {
		t.Error("a document that has moved on is a conflict")
	}
}
