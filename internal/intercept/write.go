package intercept

import (
	"errors"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/uri"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// write deals with a write of one document. A PATCH is one only where writes are guarded: nobody but optimist knows PATCH, and in
// the modes observe and off it does nothing, so that the engine's refusal of the method is the answer.
func (i *Interceptor) write(r *request) bool {
	ru, err := i.taker(r)
	if err == nil && r.journal != nil && i.Rules.Effective(ru) != rule.Guard {
		err = cantUndo(noRule)
	}
	if err != nil {
		fail(r, err)
		return true
	}
	switch i.Rules.Effective(ru) {
	case rule.Off:
		return i.pass(r, nil)
	case rule.Observe:
		return i.observe(r, ru)
	}
	return i.perform(r, ru)
}

// auto deals with a new document whose id the engine makes. It needs no guard: only a rule's transform has anything to do with
// it, and a rule that keeps what can't be placed. All others are forwarded as they come, with their outcome. Where no rule does either,
// what other names the index has isn't asked.
func (i *Interceptor) auto(r *request) bool {
	rules := i.Rules.Rules()
	var ru *rule.Rule
	if rules.Makes() {
		var err error
		if ru, err = i.taker(r); err != nil {
			fail(r, err)
			return true
		}
	} else {
		a := targetOf(r, api.IndexAuto)
		ru = rules.MatchRequest(&a)
	}
	switch {
	case i.Rules.Effective(ru) != rule.Guard:
		return i.pass(r, nil)
	case ru.Transform == nil && !ru.DeadLetters && ru.Locks == nil:
		i.Metrics.Outcomes.Inc(outcome.Passed.String(), "")
		return i.pass(r, passedAuto)
	}
	return i.perform(r, ru)
}

// passedAuto is the same for all new documents, and made once: they come by the thousand.
var passedAuto = []wire.Field{outcomeField(&outcome.Outcome{Kind: outcome.Passed, Attempts: 1})}

// perform has package write do a write that a rule takes.
func (i *Interceptor) perform(r *request, ru *rule.Rule) bool {
	w := &r.write
	defer r.endWrite()
	reason, err := i.prepare(r, ru)
	switch {
	case err != nil:
		r.Fail(err)
		return true
	case reason != "" && ru.Locks != nil:
		r.Fail(unguardable(ru, reason))
		return true
	case reason != "" && r.journal != nil:
		fail(r, cantUndo("it can't be guarded ("+reason+")"))
		return true
	case reason != "":
		return i.pass(r, []wire.Field{i.passedField(r, ru, reason)})
	}
	stamps := ru.Stamp != "" && showsDocument(w)
	if stamps {
		r.reading.BeginWrite(i.watcher, &r.Request)
	}
	a, err := i.Writes.Do(r.Context(), w)
	if err != nil {
		fail(r, err)
		return true
	}
	if stamps && a.Status < 300 {
		keep := ru.FromStamp && (!ru.Session || w.Anonymous) // else the session knows already
		var more []wire.Field
		a.Body, more = r.reading.Written(ru, keep, a.Body)
		a.Fields = append(a.Fields, more...)
	}
	w.Unanswered().NoteAnswer() // before: who has its answer may close the connection at once
	if a.Own {
		_ = r.AnswerOwn(a.Status, a.Fields, a.Body)
	} else {
		_ = r.Answer(a.Status, a.Fields, a.Body)
	}
	a.Release()
	return true
}

// showsDocument reports whether a write asks for the whole document in its answer.
func showsDocument(w *write.Request) bool {
	switch {
	case watch.Partial(w.Op.Query):
		return false
	case w.Op.Kind == api.Update:
		_, all := patch.Shows(w.Op, w.Body)
		return all
	case w.Op.Kind == api.Patch:
		_, asked := uri.Param(w.Op.Query, "_source")
		return asked
	}
	return false
}

// prepare makes r.write the write that the request is, for package write. reason says why it can't be guarded, and then it isn't
// whole.
func (i *Interceptor) prepare(r *request, ru *rule.Rule) (reason string, err error) {
	op, c, w := r.Op(), r.Client(), &r.write
	*w = write.Request{Request: base.Request{Op: op, Fields: r.Fields(), Rule: ru}, Method: r.Head().Method, Room: &r.out,
		WriteID: r.mark, Tokens: r.tokens, Journal: r.journal}
	if reason = r.whyUntouchable(); reason != "" {
		return reason, nil
	}
	w.Body, w.Fields, err = r.Plain(i.MaxBody)
	switch {
	case (errors.Is(err, proxy.ErrTooLarge) || errors.Is(err, budget.ErrTooMuch)) && op.Kind != api.Patch: // no engine knows that
		return outcome.ReasonTooLarge, nil
	case err != nil:
		return "", err
	}
	w.Client = &r.Request
	w.Session, w.Realm, w.Route, w.Caller = c.Session, c.Realm, c.Route, r.Caller()
	w.Anonymous, w.Background = !c.Known, background(w.Fields, ru)
	return "", i.takeStamp(r.Context(), r, w, r.Index(), ru)
}

// whyUntouchable is why nothing of the request may be changed, or another be sent in its place; empty: it may.
func (r *request) whyUntouchable() string {
	c := r.Client()
	switch {
	case c.Signed || r.SignedQuery():
		return outcome.ReasonSigned
	case r.Op().Fragment:
		return outcome.ReasonFragment
	case c.Bound:
		return outcome.ReasonAuth
	}
	return ""
}

// background tells the class of a write: the request's own word, else the rule's.
func background(fields []wire.Field, ru *rule.Rule) bool {
	for k := range fields {
		if wire.EqualFold(fields[k].Name, "optimist-priority") {
			return wire.EqualFold(fields[k].Value, "background")
		}
	}
	return ru.Background
}
