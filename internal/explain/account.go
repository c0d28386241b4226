// Package explain is the account of what a write would do, and why. Package write reports to an Account each step, and the
// decisions of the merge and the transform.
//
// It decides nothing, and sends nothing.
package explain

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/rule"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// Account is what a write would do, and why, as write.Service.Explain finds it out. Documents and values are those of the client
// and of the engine; a value that isn't there is left out.
type Account struct {
	Operation string `json:"operation"` // index, create, update, delete, patch
	Index     string `json:"index"`     // the concrete one, where it was asked for
	ID        string `json:"id"`
	Routing   string `json:"routing,omitempty"`

	Rule    *Rule  `json:"rule"`              // null: no rule takes the write
	Skipped []Skip `json:"skipped,omitempty"` // the rules before it
	Mode    string `json:"mode"`              // that of the rule and of the whole together

	Base    *Revision `json:"base,omitempty"`
	Current *Revision `json:"current,omitempty"`

	// Change is what the client changed: a patch from its base to what it sent, with tests; of a PATCH, from the current document
	// to what it makes of that. Array edits hold for that document only.
	Change    json.RawMessage `json:"change,omitempty"`
	Merge     []Decision      `json:"merge,omitempty"`
	Transform []Step          `json:"transform,omitempty"`

	// Document is what would be written; left out where nothing would be.
	Document json.RawMessage `json:"document,omitempty"`
	Requests []Request       `json:"requests"`
	Outcome  Outcome         `json:"outcome"`
	Notes    []string        `json:"notes,omitempty"`
}

// Rule is the rule that takes the write, and the index pattern that fits.
type Rule struct {
	Name  string `json:"name"`
	Place int    `json:"place"` // among the rules, from 1
	Index string `json:"index"` // the pattern that takes the index
}

// Skip is a rule that doesn't take the write.
type Skip struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Skip tells which rules were asked before the one that takes the write.
func (a *Account) Skip(list []rule.Skipped) {
	for _, s := range list {
		a.Skipped = append(a.Skipped, Skip{Rule: s.Rule.Name, Why: s.Why})
	}
}

// Revision is a revision of the document: the client's base, or the current one.
type Revision struct {
	// Kind of a base: as in the outcome.
	Kind        string          `json:"kind,omitempty"`
	Exists      bool            `json:"exists"`
	SeqNo       *int64          `json:"seq_no,omitempty"`
	PrimaryTerm int64           `json:"primary_term,omitempty"`
	Version     int64           `json:"version,omitempty"`
	Ambiguous   bool            `json:"ambiguous,omitempty"`
	Document    json.RawMessage `json:"document,omitempty"` // of a base: as the client saw it
}

// Decision is what the merge decided about one value.
type Decision struct {
	Path string `json:"path"`
	// Decision is kept, taken, same, overwritten, conflict or combined; or the strategy that did it: sum, max, min, union,
	// append, by_key.
	Decision string          `json:"decision"`
	Strategy string          `json:"strategy,omitempty"` // where both sides had changed the value
	Rule     string          `json:"rule,omitempty"`     // the path of the rule that gave the strategy; none: the default
	Unfit    bool            `json:"unfit,omitempty"`    // the strategy can't be applied to what is there
	Base     json.RawMessage `json:"base,omitempty"`
	Sent     json.RawMessage `json:"sent,omitempty"`
	Current  json.RawMessage `json:"current,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// Step is one step of the transform.
type Step struct {
	Step int    `json:"step"` // from 0, as in transform[0]: texts and mistakes in a configuration call it so, too
	Op   string `json:"op"`
	Path string `json:"path"`
	Done bool   `json:"done"`
	Why  string `json:"why,omitempty"` // it wasn't done, or changed nothing

	Refuses bool `json:"refuses,omitempty"` // it ends the write: a test or a condition failed, or its value doesn't fit
}

// Request is a request that would go upstream, with what the engine would say to it as the document is now.
type Request struct {
	Method string `json:"method"`
	Target string `json:"target"`
	Guard  *Guard `json:"guard,omitempty"`
	Create bool   `json:"create,omitempty"` // refused where the document exists
	Status int    `json:"status,omitempty"` // 0: only the engine can tell
}

// Guard is the revision that a request asks for.
type Guard struct {
	SeqNo       int64 `json:"if_seq_no"`
	PrimaryTerm int64 `json:"if_primary_term"`
}

// Outcome is what the client would be told.
type Outcome struct {
	Kind      string   `json:"kind"`             // passed, guarded, merged
	Status    int      `json:"status,omitempty"` // 0: only the engine can tell
	Result    string   `json:"result,omitempty"` // created, updated, deleted, noop, not_found
	Error     *Error   `json:"error,omitempty"`
	Attempts  int      `json:"attempts"`
	Base      string   `json:"base"`
	Ambiguous bool     `json:"ambiguous,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Overwrote []string `json:"overwrote,omitempty"`
	Field     string   `json:"field"` // the Optimist-Outcome field
}

// Error is why the write would be refused.
type Error struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// About notes the write's document, its rule and its base.
func (a *Account) About(w *base.Search) {
	a.Operation, a.Index, a.ID, a.Routing = w.Op.Kind.String(), w.Doc.Index, w.Doc.ID, w.Doc.Routing
	a.Mode = rule.Guard.String()
	ru, b := w.Rule, &w.Base
	a.Rule = &Rule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(w.Name, w.Index.Name, w.Index.DataStream)}
	a.Base = NewRevision(b.Numbers, b.Version, b.View)
	a.Base.Kind, a.Base.Ambiguous = w.Outcome.Base.String(), w.Outcome.Ambiguous
}

// SetChange tells what the client changed. Where to is nil, nothing is told.
func (a *Account) SetChange(from, to []byte) {
	if to == nil {
		return
	}
	if p, err := edit.Diff(from, to, tree.Limits{}); err == nil {
		a.Change = p.AppendJSON(nil)
	}
}

// AppendJSON appends the account as JSON. Numbers in documents keep their digits.
func (a *Account) AppendJSON(dst []byte) ([]byte, error) {
	text, err := jsontext.Marshal(a)
	if err != nil {
		return nil, err
	}
	return append(append(dst, text...), '\n'), nil
}

// Document is a body for an account: left out where it isn't JSON.
func Document(body []byte) json.RawMessage {
	if !jsontext.Valid(body) {
		return nil
	}
	return bytes.Clone(body)
}

// NewRevision is a revision for an account.
func NewRevision(n doc.Numbers, version int64, source []byte) *Revision {
	r := &Revision{Exists: n.Known(), Version: version, PrimaryTerm: n.PrimaryTerm, Document: Document(source)}
	if n.Known() {
		r.SeqNo = &n.SeqNo
	}
	return r
}

// Merger is m, with what it decides put into the account.
func (a *Account) Merger(m *merge.Merger) intent.Merger { return &merger{m, a} }

type merger struct {
	*merge.Merger
	account *Account
}

func (m *merger) Merge(base, sent, current []byte) (merge.Result, error) {
	r, list, err := m.Explain(base, sent, current)
	m.account.decided(list)
	return r, err
}

// Transformer is t, with what becomes of its steps put into the account.
func (a *Account) Transformer(t *edit.Transformer) intent.Transformer { return &transformer{t, a} }

type transformer struct {
	*edit.Transformer
	account *Account
}

func (t *transformer) Apply(candidate []byte, in *edit.Inputs) ([]byte, error) {
	after, list, err := t.Explain(candidate, in)
	t.account.stepped(list)
	return after, err
}

// decided puts what a merge decided into the account, in place of what an earlier attempt did.
func (a *Account) decided(list []merge.Decision) {
	a.Merge = a.Merge[:0]
	for i := range list {
		d := &list[i]
		out := Decision{Path: d.Path, Decision: d.Verdict.String(), Rule: d.Rule, Unfit: d.Unfit,
			Base: d.Base, Sent: d.Sent, Current: d.Current, Result: d.Result}
		if d.Both {
			out.Strategy = d.Strategy.String()
			if d.Verdict == merge.Calculated || d.Verdict == merge.Combined {
				out.Decision = out.Strategy
			}
		}
		a.Merge = append(a.Merge, out)
	}
}

// stepped puts what became of the transform's steps into the account, in place of what an earlier attempt did.
func (a *Account) stepped(list []edit.StepResult) {
	a.Transform = a.Transform[:0]
	for i, s := range list {
		out := Step{Step: i, Op: s.Step.Action.String(), Path: s.Step.Path, Done: s.Held && s.Err == nil}
		switch when, _ := s.Step.When.(fmt.Stringer); {
		case s.Err != nil:
			out.Refuses, out.Why = true, edit.Reason(s.Err)
		case !s.Held && when != nil:
			out.Why = "its condition doesn't hold: " + when.String()
		case !s.Held:
			out.Why = "its condition doesn't hold"
		case !s.Changed:
			out.Why = "it changes nothing"
		}
		a.Transform = append(a.Transform, out)
	}
}

// SetAnswer puts what the client would be answered into the account. A status of 0 is an answer that only the engine can tell.
func (a *Account) SetAnswer(status int, body []byte) {
	a.Outcome.Status = status
	if status < 300 || status == 404 {
		a.Outcome.Result = gjson.GetBytes(body, "result").String()
	}
	if e := gjson.GetBytes(body, "error"); e.Exists() {
		a.Outcome.Error = &Error{Type: e.Get("type").String(), Reason: e.Get("reason").String()}
	}
}
