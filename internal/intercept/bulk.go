package intercept

import (
	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/watch"
	"optimist/internal/wire"
)

// many forwards requests that write many documents. They aren't guarded, and the answer says so: whoever counts on a rule must
// not have to guess.
func (i *Interceptor) many(r *request) bool {
	rules, op := i.Rules.Rules(), r.Op()
	a := asked(r, api.Index)
	ru := rules.MatchRequest(&a)
	if len(op.Index) == 0 && len(rules.All()) > 0 {
		ru = rules.All()[0] // any of its items may be of an index that a rule takes
	}
	s, err := i.withoutStamps(r)
	switch {
	case err != nil:
		r.Fail(err)
		return true
	case i.Rules.Effective(ru) != rule.Guard:
		return i.forward(r, &s, nil, nil)
	case op.Kind != api.Bulk:
		return i.forward(r, &s, []wire.Field{i.passedField(r, ru, outcome.ReasonByQuery)}, nil)
	}
	reason := outcome.ReasonBulk
	if s.unread {
		reason = outcome.ReasonTooLarge // a stamp that is in it is stored
	}
	var capture *watch.Capture
	if c := r.Client(); c.Known {
		epoch := i.Sessions.Epoch()
		capture = watch.NewCapture(bulkLimit)
		capture.Whole = func() { i.noteBulk(r, capture, epoch) }
	}
	return i.forward(r, &s, []wire.Field{i.passedField(r, ru, reason)}, capture)
}

// bulkLimit is the size of a bulk's answer, in bytes, up to which it is looked at: some 20,000 items.
const bulkLimit = 4 << 20

// noteBulk ends what a session knew of the documents that a bulk of its own has written or deleted, as far as the answer names them.
func (i *Interceptor) noteBulk(r *request, capture *watch.Capture, epoch session.Epoch) {
	answer, readable := capture.Body()
	routing, ok := r.Routing()
	if !readable || !ok {
		return
	}
	for item := range es.Elements(answer, "items") {
		for _, action := range [...]string{"index", "create", "update", "delete"} {
			if did := es.Member(item, action); did != nil {
				i.noteItem(r.Client().Session, action, es.ParseItem(did), routing, epoch)
			}
		}
	}
}

func (i *Interceptor) noteItem(sess session.Session, action string, it es.Item, routing string, epoch session.Epoch) {
	result := string(it.Result)
	ref := doc.Ref{Index: string(it.Index), ID: it.ID(), Routing: routing}
	switch {
	case result == "" || result == "noop" || result == "created" && it.Version == 1:
		// It was refused, or is new, so that nobody knew of it: most items of most bulks.
	case result == "deleted":
		i.Sessions.ReadUnknown(sess, ref) // nor is what it read of it a base for what comes after
	case it.Numbered:
		i.Sessions.WroteElse(sess, ref, it.Revision, action != "update", epoch)
	default:
		i.Sessions.WroteElse(sess, ref, doc.Revision{}, action != "update", epoch)
	}
}
