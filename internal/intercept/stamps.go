package intercept

import (
	"bytes"
	"context"
	"errors"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/jsontext"
	"optimist/internal/rule"
	"optimist/internal/stamp"
	"optimist/internal/wire"
	"optimist/internal/write"
)

// stampField is a field that stamps are taken out of.
type stampField struct {
	name string
	// strict says that the field is the rule's, whatever stands in it: what isn't a stamp is refused, for it would neither be stored
	// nor name a base. Otherwise only stamps are taken out.
	strict bool
}

// takeStamp takes the stamp out of a write that is guarded, before anybody else looks at it.
func (i *Interceptor) takeStamp(ctx context.Context, r *request, w *write.Request, index string, ru *rule.Rule) error {
	if !i.Rules.Rules().Stamps() {
		return nil
	}
	f := stampField{name: ru.Stamp, strict: ru.Stamp != "" && i.Rules.Effective(ru) == rule.Guard}
	if ru.Stamp == "" {
		st := i.watcher.Stamper(&r.Request, index)
		if st == nil {
			return nil
		}
		f.name = st.Stamp
	}
	if err := budget.Of(ctx).Take(int64(len(w.Body))); err != nil { // for the one without the stamp
		return err
	}
	body, t, err := f.takeOut(w.Op.Kind, w.Body, w.Fields)
	if err != nil {
		return err
	}
	w.Body = body
	if s, _, ok := t.Stamp(); ok && f.strict {
		w.Stamp = s
	}
	return nil
}

// substitute is a write that isn't guarded, without what is in it for optimist.
type substitute struct {
	changed bool // there was something; body and fields are what to send instead
	body    []byte
	fields  []wire.Field
}

// withoutOurs takes out of a write that isn't guarded what is in it for optimist: the tokens in the actions of a bulk, and stamps. Clients
// must not store stamps that they got while documents were stamped.
func (i *Interceptor) withoutOurs(r *request) (s substitute, err error) {
	op := r.Op()
	isBulk, o := op.Kind == api.Bulk, ours{stamps: i.Rules.Rules().Stamps()}
	var f stampField
	switch {
	case isBulk:
	case !o.stamps || !op.Kind.Write() && op.Kind != api.IndexAuto:
		return s, nil
	default:
		st := i.watcher.Stamper(&r.Request, r.Index())
		if st == nil {
			return s, nil
		}
		f = stampField{name: st.Stamp, strict: op.Kind == api.IndexAuto && i.Rules.Effective(st) == rule.Guard}
	}
	if !r.Rewritable() {
		return s, nil
	}
	body, fields, err := r.Plain(i.MaxBody)
	o.tokens = err == nil && isBulk && mayNameTokens(body)
	if err == nil && o.any() {
		err = budget.Of(r.Context()).Take(int64(len(body))) // for the one without them
	}
	switch {
	case o.any() && errors.Is(err, budget.ErrOverloaded):
		return s, err
	case !o.any(), err != nil:
		return s, nil //nolint:nilerr // the request is forwarded as it is: what is wrong with it shows there
	case isBulk:
		s.body = i.bulkWithout(o, r, body)
	default:
		s.body, _, err = f.takeOut(op.Kind, body, fields)
	}
	s.fields, s.changed = fields, len(s.body) != len(body)
	return s, err
}

// ours is what a bulk may have in it for optimist: tokens in its actions, and stamps in its documents.
type ours struct{ tokens, stamps bool }

func (o ours) any() bool { return o.tokens || o.stamps }

// bulkWithout is a bulk, or an item of one, without what may be in it for optimist. Its lines otherwise stay as they are; from the first
// action on that no engine knows, all of the bulk does.
func (i *Interceptor) bulkWithout(o ours, r *request, body []byte) []byte {
	if !o.any() {
		return body
	}
	var out []byte
	done := 0
	replace := func(from, to int, with []byte) {
		out = append(append(out, body[done:from]...), with...)
		done = to
	}
	stampers := map[string]*rule.Rule{}
	for a := range bulk.Actions(body, bulk.Defaults{Index: r.Index()}) {
		if o.tokens {
			if from, to := tokensAt(a.Line.Of(body)); from < to {
				replace(a.Line.From+from, a.Line.From+to, nil)
			}
		}
		if !o.stamps {
			continue
		}
		st, known := stampers[a.Index]
		if !known {
			st = i.watcher.Stamper(&r.Request, a.Index)
			stampers[a.Index] = st
		}
		document := a.Source.Of(body)
		if rest := withoutStamp(st, a.Verb, document); len(rest) != len(document) {
			replace(a.Source.From, a.Source.To, rest)
		}
	}
	if done == 0 {
		return body
	}
	return append(out, body[done:]...)
}

// withoutStamp is what a bulk sends with a verb, without the stamp of a rule; nil: there is none.
func withoutStamp(st *rule.Rule, verb string, document []byte) []byte {
	if st == nil {
		return document
	}
	kind := api.Index
	if verb == "update" {
		kind = api.Update
	}
	f := stampField{name: st.Stamp}
	rest, _, _ := f.takeOut(kind, document, nil)
	return rest
}

// takeOut takes the stamp out of the body of a write of one document.
func (f *stampField) takeOut(kind api.Kind, body []byte, fields []wire.Field) (rest []byte, t stamp.Taken, err error) {
	switch kind {
	case api.Index, api.IndexAuto, api.Create:
		return f.takeFrom(body, "")
	case api.Update:
		if rest, t, err = f.takeFrom(body, "upsert"); err != nil {
			return body, t, err
		}
		return f.takeFrom(rest, "doc")
	case api.Patch:
		return f.takeOutOfPatch(body, fields)
	}
	return body, t, nil
}

// takeFrom takes the stamp out of a document, or out of its member of that name ("": out of the document itself).
func (f *stampField) takeFrom(document []byte, member string) (rest []byte, t stamp.Taken, err error) {
	var ok bool
	if member == "" {
		rest, t, ok = stamp.Take(document, f.name)
	} else {
		rest, t, ok = stamp.TakeIn(document, member, f.name)
	}
	switch _, found, is := t.Stamp(); {
	case !ok, !is && !f.strict: // what is no JSON object is for whoever reads it to say
		return document, stamp.Taken{}, nil
	case found && !is:
		return nil, t, f.refusal()
	}
	return rest, t, nil
}

func (f *stampField) refusal() error {
	return illegal("[" + f.name + "] is for the stamp that a document was served with, and isn't stored: send it as it was served, or leave " +
		"it out, or null")
}

// takeOutOfPatch looks at the body of a PATCH. A merge patch may be a whole document, with its stamp; an operation on the field
// is refused: the document that it is applied to doesn't have it.
func (f *stampField) takeOutOfPatch(body []byte, fields []wire.Field) (rest []byte, t stamp.Taken, err error) {
	h := wire.Head{Fields: fields}
	if media := h.Get("content-type"); bytes.HasPrefix(bytes.ToLower(media), []byte("application/merge-patch+json")) {
		return f.takeFrom(body, "")
	}
	if !f.strict || !jsontext.Valid(body) {
		return body, t, nil
	}
	gjson.ParseBytes(body).ForEach(func(_, op gjson.Result) bool {
		op.ForEach(func(k, v gjson.Result) bool {
			switch k.String() {
			case "path", "from":
				if f.isIn(v.String()) {
					err = f.refusal()
				}
			case "value":
				if _, inside, ok := stamp.Take([]byte(v.Raw), f.name); ok && inside.Value != nil && op.Get("path").String() == "" {
					err = f.refusal()
				}
			}
			return err == nil
		})
		return err == nil
	})
	return body, t, err
}

// isIn reports whether a JSON Pointer (RFC 6901) leads to the field, or into it.
func (f *stampField) isIn(pointer string) bool {
	names, err := jsontext.SplitPointer(pointer)
	return err == nil && len(names) > 0 && names[0] == f.name
}
