package write

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/rule"
	"optimist/rewrite"
)

// Account is what a write would do, and why, as Service.Explain finds it out. Documents and values are those of the client and of the
// engine; a value that isn't there is left out.
type Account struct {
	Operation string `json:"operation"` // index, create, update, delete, patch
	Index     string `json:"index"`     // the concrete one, where it was asked for
	ID        string `json:"id"`
	Routing   string `json:"routing,omitempty"`

	Rule    *AccountRule  `json:"rule"`              // null: no rule takes the write
	Skipped []AccountSkip `json:"skipped,omitempty"` // the rules before it
	Mode    string        `json:"mode"`              // that of the rule and of the whole together

	Base    *AccountRevision `json:"base,omitempty"`
	Current *AccountRevision `json:"current,omitempty"`

	// Change is what the client changed: a patch from its base to what it sent, with tests; of a PATCH, from the current document to what
	// it makes of that. Array edits hold for that document only.
	Change    json.RawMessage   `json:"change,omitempty"`
	Merge     []AccountDecision `json:"merge,omitempty"`
	Transform []AccountStep     `json:"transform,omitempty"`

	// Document is what would be written; left out where nothing would be.
	Document json.RawMessage  `json:"document,omitempty"`
	Requests []AccountRequest `json:"requests"`
	Outcome  AccountOutcome   `json:"outcome"`
	Notes    []string         `json:"notes,omitempty"`
}

// AccountRule is the rule that takes the write, and what of it fits.
type AccountRule struct {
	Name  string `json:"name"`
	Place int    `json:"place"` // among the rules, from 1
	Index string `json:"index"` // the pattern that takes the index
}

// AccountSkip is a rule that doesn't take the write.
type AccountSkip struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Skip tells which rules were asked before the one that takes the write.
func (a *Account) Skip(list []rule.Skipped) {
	for _, s := range list {
		a.Skipped = append(a.Skipped, AccountSkip{Rule: s.Rule.Name, Why: s.Why})
	}
}

// AccountRevision is a revision of the document: the client's base, or the current one.
type AccountRevision struct {
	// Kind of a base: as in the outcome.
	Kind        string          `json:"kind,omitempty"`
	Exists      bool            `json:"exists"`
	SeqNo       *int64          `json:"seq_no,omitempty"`
	PrimaryTerm int64           `json:"primary_term,omitempty"`
	Version     int64           `json:"version,omitempty"`
	Ambiguous   bool            `json:"ambiguous,omitempty"`
	Document    json.RawMessage `json:"document,omitempty"` // of a base: as the client saw it
}

// AccountDecision is what the merge decided about one value.
type AccountDecision struct {
	Path string `json:"path"`
	// Decision is kept, taken, same, overwritten, conflict or combined; or the strategy that did it: sum, max, min, union, append, by_key.
	Decision string          `json:"decision"`
	Strategy string          `json:"strategy,omitempty"` // where both sides had changed the value
	Rule     string          `json:"rule,omitempty"`     // the path of the rule that gave the strategy; none: the default
	Unfit    bool            `json:"unfit,omitempty"`    // the strategy can't be applied to what is there
	Base     json.RawMessage `json:"base,omitempty"`
	Sent     json.RawMessage `json:"sent,omitempty"`
	Current  json.RawMessage `json:"current,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// AccountStep is one step of the transform.
type AccountStep struct {
	Step int    `json:"step"` // from 1
	Op   string `json:"op"`
	Path string `json:"path"`
	Done bool   `json:"done"`
	Why  string `json:"why,omitempty"` // it wasn't done, or changed nothing
}

// AccountRequest is a request that would go upstream, with what the engine would say to it as the document is now.
type AccountRequest struct {
	Method string        `json:"method"`
	Target string        `json:"target"`
	Guard  *AccountGuard `json:"guard,omitempty"`
	Create bool          `json:"create,omitempty"` // refused where the document exists
	Status int           `json:"status,omitempty"` // 0: only the engine can tell
}

// AccountGuard is the revision that a request asks for.
type AccountGuard struct {
	SeqNo       int64 `json:"if_seq_no"`
	PrimaryTerm int64 `json:"if_primary_term"`
}

// AccountOutcome is what the client would be told.
type AccountOutcome struct {
	Kind      string        `json:"kind"`             // passed, guarded, merged
	Status    int           `json:"status,omitempty"` // 0: only the engine can tell
	Result    string        `json:"result,omitempty"` // created, updated, deleted, noop, not_found
	Error     *AccountError `json:"error,omitempty"`
	Attempts  int           `json:"attempts"`
	Base      string        `json:"base"`
	Ambiguous bool          `json:"ambiguous,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Overwrote []string      `json:"overwrote,omitempty"`
	Field     string        `json:"field"` // the Optimist-Outcome field
}

// AccountError is why the write would be refused.
type AccountError struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// AppendJSON appends the account as JSON. Numbers in documents keep their digits.
func (a *Account) AppendJSON(dst []byte) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return nil, err
	}
	return append(dst, b.Bytes()...), nil
}

// document is a body for an account: left out where it isn't JSON.
func document(body []byte) json.RawMessage {
	if !doc.ValidJSON(body) {
		return nil
	}
	return bytes.Clone(body)
}

func accountRevision(n doc.Numbers, version int64, source []byte) *AccountRevision {
	r := &AccountRevision{Exists: n.Known(), Version: version, PrimaryTerm: n.PrimaryTerm, Document: document(source)}
	if n.Known() {
		r.SeqNo = &n.SeqNo
	}
	return r
}

// decided puts what a merge decided into the account, in place of what an earlier attempt did.
func (a *Account) decided(list []rewrite.Decision) {
	a.Merge = a.Merge[:0]
	for i := range list {
		d := &list[i]
		out := AccountDecision{Path: d.Path, Decision: d.Verdict.String(), Rule: d.Rule, Unfit: d.Unfit,
			Base: d.Base, Sent: d.Sent, Current: d.Current, Result: d.Result}
		if d.Both {
			out.Strategy = d.Strategy.String()
			if d.Verdict == rewrite.Calculated || d.Verdict == rewrite.Combined {
				out.Decision = out.Strategy
			}
		}
		a.Merge = append(a.Merge, out)
	}
}

// stepped puts what became of the transform's steps into the account, in place of what an earlier attempt did.
func (a *Account) stepped(list []rewrite.StepTold) {
	a.Transform = a.Transform[:0]
	for i, s := range list {
		out := AccountStep{Step: i + 1, Op: s.Step.Action.String(), Path: s.Step.Path, Done: s.Held && s.Err == nil}
		switch when, _ := s.Step.When.(fmt.Stringer); {
		case s.Err != nil:
			out.Why = s.Err.Error()
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

// said puts what the client would be answered into the account.
func (a *Account) said(o *Outcome, answer *Answer) {
	a.Outcome = AccountOutcome{Kind: o.Kind.String(), Attempts: o.Attempts, Base: o.Base.String(), Ambiguous: o.Ambiguous,
		Reason: o.Reason, Overwrote: o.Overwrote, Field: string(o.Append(nil))}
	if answer == nil {
		return
	}
	a.Outcome.Status = answer.Status
	if answer.Status < 300 || answer.Status == 404 {
		a.Outcome.Result = gjson.GetBytes(answer.Body, "result").String()
	}
	if e := gjson.GetBytes(answer.Body, "error"); e.Exists() {
		a.Outcome.Error = &AccountError{Type: e.Get("type").String(), Reason: e.Get("reason").String()}
	}
}
