package gate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/fencing"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/rule"
)

// keeper remembers what it was asked last.
type keeper struct {
	asked   *fencing.Question
	refusal *Refusal
}

func (k *keeper) Admit(_ context.Context, p *fencing.Question) *Refusal {
	k.asked = p
	return k.refusal
}

func writing(locks *rule.Locks) *Applicant {
	w := &Applicant{Search: &base.Search{Question: base.Question{
		Request: &base.Request{Rule: &rule.Rule{Name: "r", Locks: locks}},
		Terms:   intake.Terms{Name: "alias", Doc: es.Document{Ref: doc.Ref{Index: "shop", ID: "7"}}},
	}}}
	w.Index.Name, w.Index.Aliases = "shop", []string{"other", "alias"}
	return w
}

func TestADocumentIsLockedByAnyNameOfItsIndex(t *testing.T) {
	k := &keeper{}
	g := &Gate{Locks: k}
	w := writing(&rule.Locks{ByID: true, Global: "all"})
	w.Index.DataStream = "stream"
	if answer, _ := g.Ask(t.Context(), w, &doc.Revision{}, nil); answer != nil {
		t.Fatalf("refused: %+v", answer)
	}
	if want := []string{"alias", "shop", "stream", "other"}; !slices.Equal(k.asked.Indices, want) || k.asked.Global != "all" ||
		!slices.Equal(k.asked.Paths, []string{"7"}) || k.asked.Dry {
		t.Errorf("asked for %+v, want the names %v", k.asked, want)
	}
}

func TestARefusalIsTheAnswerAndAGlanceChangesNothing(t *testing.T) {
	k := &keeper{refusal: &Refusal{Status: 423, Body: []byte("{}"), Reason: outcome.ReasonLocked}}
	g := (&Gate{Locks: k}).Glance(nil)
	answer, reason := g.Ask(t.Context(), writing(&rule.Locks{ByID: true}), &doc.Revision{}, nil)
	if answer == nil || answer.Status != 423 || reason != outcome.ReasonLocked || !k.asked.Dry {
		t.Errorf("%+v, %q, asked %+v", answer, reason, k.asked)
	}
}

// The engine would carry the _update out, so that nobody knows the path that it leaves.
func TestAWriteWhosePathNobodyKnowsIsRefusedUnasked(t *testing.T) {
	k := &keeper{}
	w := writing(&rule.Locks{Field: []string{"path"}})
	w.AsPart = true
	answer, reason := (&Gate{Locks: k}).Ask(t.Context(), w, &doc.Revision{}, nil)
	if answer == nil || answer.Status != 400 || reason != outcome.ReasonUnguardable || k.asked != nil ||
		!strings.Contains(string(answer.Body), "enforces locks") {
		t.Errorf("%+v, %q, asked %+v", answer, reason, k.asked)
	}
}

// TestARefusalAsksForNothingThatTheWriteHas: a guard makes no difference where the path counts, which only the engine's script would know.
func TestARefusalAsksForNothingThatTheWriteHas(t *testing.T) {
	w := writing(&rule.Locks{ByID: true})
	w.Op = &api.Op{Kind: api.Update}
	if why := w.WhyUnguarded(); !strings.Contains(why, "if_seq_no") {
		t.Error(why)
	}
	w.Rule.Locks.Field = []string{"path"}
	if why := w.WhyUnguarded(); strings.Contains(why, "if_seq_no") || !strings.Contains(why, "change the path") || !strings.Contains(why, "a doc or a PATCH") {
		t.Error(why)
	}
}

// TestADocumentHasThePathsThatItsIndexFinds: a lock of any of them keeps the write out.
func TestADocumentHasThePathsThatItsIndexFinds(t *testing.T) {
	for source, want := range map[string]string{
		`{"file":{"path":"/a"}}`:                                   "/a",
		`{"file":{"path":"/a"},"file":{"path":"/b"}}`:              "/a /b",
		`{"file.path":"/a"}`:                                       "/a",
		`{"file.path":"/a","file":{"path":"/b","x":1},"file.x":7}`: "/a /b",
		`{"file":{"path":["/a","/b",null]}}`:                       "/a /b",
		`{"file":[{"path":"/a"},{"x":1},{"path":["/b"]}]}`:         "/a /b",
		`{"file":[[{"path":[["/a"]]}]]}`:                           "/a",
		`{"\u0066ile":{"p\u0061th":"\/a"}}`:                        "/a",
		`{"file":{"path":null}}`:                                   "",
		`{"file":{"path":""}}`:                                     "",
		`{"file":"/a"}`:                                            "",
		`{"path":"/a","file":{"pathway":"/a"},"filed.path":"/a"}`:  "",
		`[]`: "",
		``:   "",
	} {
		got, why := pathsAt([]byte(source), []string{"file", "path"})
		if strings.Join(got, " ") != want || why != "" {
			t.Errorf("%s: %q %s, want %q", source, got, why, want)
		}
	}
	if got, _ := pathsAt([]byte(`{"file":{"path":"/a"}}`), []string{"file.path"}); len(got) != 1 {
		t.Error("a pointer with a dot is another spelling of the same field")
	}
}

func TestADocumentWhosePathsCanNotBeReadIsRefused(t *testing.T) {
	nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for source, want := range map[string]string{
		`{"path":7}`:              whyNoText,
		`{"path":{"x":"/a"}}`:     whyNoText,
		`{"path":["/a",true]}`:    whyNoText,
		`{"path":` + nested + `}`: whyNested,
		`{"path":["/a"` + strings.Repeat(`,"/a"`, maxPaths) + `]}`: whyMany,
	} {
		k := &keeper{}
		w := writing(&rule.Locks{Field: []string{"path"}})
		w.Op = &api.Op{Kind: api.Create}
		answer, reason := (&Gate{Locks: k}).Ask(t.Context(), w, &doc.Revision{}, []byte(source))
		if answer == nil || answer.Status != 400 || reason != outcome.ReasonUnguardable || k.asked != nil || !strings.Contains(string(answer.Body), want) {
			t.Errorf("%.40s: %+v, %q, asked %+v", source, answer, reason, k.asked)
		}
	}
}

// TestADocumentThatHidesItsPlaceIsNotWritten: without its source nobody knows which locks of the tree protect it.
func TestADocumentThatHidesItsPlaceIsNotWritten(t *testing.T) {
	hidden := &doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}}
	for _, l := range []*rule.Locks{{Field: []string{"path"}}, {ByID: true}} {
		w := writing(l)
		answer, reason := (&Gate{Locks: &keeper{}}).Ask(t.Context(), w, hidden, []byte(`{"path":"a"}`))
		if hides := l.Field != nil; Hides(w.Rule, hidden) != hides || hides != (reason == outcome.ReasonUnguardable) || hides != (answer != nil) {
			t.Errorf("%+v: %v, %q", l, answer, reason)
		}
	}
}
