package intercept

import (
	"errors"
	"time"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/proxy"
)

// many deals with requests that write many documents: items of a bulk are guarded, changes by query are forwarded. The answer says what
// was done: whoever counts on a rule must not have to guess.
func (i *Interceptor) many(r *request) bool {
	rules, op := i.Rules.Rules(), r.Op()
	a := asked(r, api.Index)
	ru := rules.MatchRequest(&a)
	if len(op.Index) == 0 && len(rules.All()) > 0 {
		ru = rules.All()[0] // any of its items may be of an index that a rule takes
	}
	switch {
	case i.Rules.Effective(ru) != rule.Guard:
		return i.passMany(r, nil)
	case op.Kind != api.Bulk:
		if i.byQuery(r, ru) {
			return true
		}
		return i.passMany(r, []wire.Field{i.passedField(r, ru, outcome.ReasonByQuery)})
	}
	reason := i.bulkReason(r)
	if reason == "" {
		done, why := i.bulk(r)
		if done {
			return true
		}
		reason = why
	}
	return i.passMany(r, []wire.Field{i.passedField(r, ru, reason)})
}

// bulkReason is why the items of a bulk can't be guarded, as far as its head tells.
func (i *Interceptor) bulkReason(r *request) string {
	c, op := r.Client(), r.Op()
	_, otherForm := uri.Param(op.Query, "format")
	switch {
	case c.Signed || r.SignedQuery():
		return outcome.ReasonSigned
	case op.Fragment:
		return outcome.ReasonFragment
	case c.Bound:
		return outcome.ReasonAuth
	case otherForm, !wire.NDJSONBody(r.Head().Fields), !wire.AcceptsJSON(r.Head().Fields):
		return outcome.ReasonFormat
	}
	return ""
}

// bulk guards the items of a bulk. done is false where there is nothing to guard, or where it can't be: then reason says why, and the
// request is still to be forwarded.
func (i *Interceptor) bulk(r *request) (done bool, reason string) {
	began := time.Now()
	body, _, err := r.Plain(i.MaxBody)
	taken := budget.Of(r.Context())
	if err == nil { // twice: in the requests that the items go in, and in what is made of the items themselves
		err = taken.Take(2*int64(len(body)) + int64(mostItems(body))*roomOfItem)
	}
	switch {
	case errors.Is(err, proxy.ErrTooLarge), errors.Is(err, budget.ErrTooMuch):
		return false, outcome.ReasonTooLarge
	case err != nil:
		r.Fail(err)
		return true, ""
	}
	b, err := i.readItems(r, body)
	if err != nil {
		return false, outcome.ReasonFormat // the engine says what is wrong with it
	}
	if !b.choose() {
		if b.passes {
			reason = outcome.ReasonBulk
		}
		return false, reason
	}
	switch err := taken.Take(int64(b.guarded()) * roomOfGuarded); {
	case errors.Is(err, budget.ErrTooMuch):
		return false, outcome.ReasonTooLarge
	case err != nil:
		r.Fail(err)
		return true, ""
	}
	b.run()
	b.answer(began)
	return true, ""
}

// How many bytes an item takes beyond those of its text, and one that is guarded besides: its write, and the goroutine that waits for it.
const (
	roomOfItem    = 1 << 10
	roomOfGuarded = 12 << 10
)

// passMany forwards the request as it is, but for stamps.
func (i *Interceptor) passMany(r *request, fields []wire.Field) bool {
	s, err := i.withoutStamps(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	var capture *watch.Capture
	if c := r.Client(); c.Known && fields != nil && r.Op().Kind == api.Bulk {
		epoch := i.Sessions.Epoch()
		capture = watch.NewCapture(budget.Of(r.Context()), bulkLimit)
		capture.Whole = func() { i.noteBulk(r, capture, epoch) }
	}
	return i.forward(r, &s, fields, capture)
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
	routing = i.routing(r, routing, r.Index())
	for item := range es.Elements(answer, "items") {
		for _, action := range [...]string{"index", "create", "update", "delete"} {
			if did := es.Member(item, action); did != nil {
				i.noteItem(r.Client().Session, action, es.ParseItem(did), routing, epoch)
			}
		}
	}
}

// routing is the one of a document that the request names in an index, or by an alias: the given one, or else the alias's, as far as it is
// known.
func (i *Interceptor) routing(r *request, given, index string) string {
	if given == "" && index != "" {
		given, _ = i.catalog.Routing(r.Client().Realm, index)
	}
	return given
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
