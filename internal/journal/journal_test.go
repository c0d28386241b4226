package journal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/rule"
	"optimist/internal/undo"
)

// page remembers what was noted.
type page struct {
	Journal
	noted []undo.Write
}

func (p *page) Note(_ context.Context, w *undo.Write) (undo.Place, error) {
	p.noted = append(p.noted, *w)
	return undo.Place{}, nil
}

// open is an engine that shows each client all of every document.
type open struct{ catalog.Engine }

func (open) SeesWhole(context.Context, es.Caller, string, string) (bool, error) { return true, nil }

func numbers(seq int64) doc.Numbers { return doc.Numbers{SeqNo: seq, PrimaryTerm: 1} }

// entry is a write in place of the revision that its maker knows.
func entry(p *page) *Entry {
	e := &Entry{Journal: p, Guard: numbers(7), Cur: doc.Revision{Numbers: numbers(7), Source: []byte(`{"n":1}`)}, After: []byte(`{"n":2}`),
		Search: &base.Search{Question: base.Question{
			Request: &base.Request{Rule: &rule.Rule{Name: "shop"}, Op: &api.Op{Kind: api.Index}},
			Write:   intake.Write{JSON: true, Doc: es.Document{Ref: doc.Ref{Index: "shop", ID: "7"}}},
		}}}
	e.Bases = &base.Finder{Catalog: catalog.New(catalog.Options{Engine: open{}})}
	_, _ = e.Bases.Catalog.SeesWhole(context.Background(), e.Asker(), e.Name, "") // from now on that is known
	return e
}

func TestAWriteIsNotedWithTheDocumentBeforeAndAfter(t *testing.T) {
	p := &page{}
	if _, err := entry(p).Note(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := entry(p)
	made.Guard, made.Cur = doc.Numbers{}, doc.Revision{}
	removed := entry(p)
	removed.Remove = true
	for _, e := range []*Entry{made, removed} {
		if _, err := e.Note(t.Context()); err != nil {
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
		_, err := e.Note(t.Context())
		var refused *undo.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, want) || len(p.noted) != 0 {
			t.Errorf("%s: %v, noted %v", want, err, p.noted)
		}
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
