package write

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/rewrite"
)

// partial is the `doc` of an _update: the engine merges its objects into the document's, key by key, and everything else takes the place
// of what was there; null, too, which is stored.
type partial []byte

func (p partial) apply(doc []byte, _ *rewrite.Inputs) ([]byte, error) {
	ops := merging(nil, "", gjson.ParseBytes(doc), gjson.ParseBytes(p))
	if len(ops) == 0 {
		return doc, nil
	}
	return ops.Apply(doc)
}

func (p partial) repeatable() bool               { return true }
func (p partial) same(before, after []byte) bool { return string(before) == string(after) }

// merging appends the operations that merge part into the object cur, at a path.
func merging(ops rewrite.Patch, path string, cur, part gjson.Result) rewrite.Patch {
	there := map[string]gjson.Result{}
	cur.ForEach(func(k, v gjson.Result) bool {
		there[k.String()] = v
		return true
	})
	part.ForEach(func(k, v gjson.Result) bool {
		key := k.String()
		at := path + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
		switch old, found := there[key]; {
		case found && old.IsObject() && v.IsObject():
			ops = merging(ops, at, old, v)
		case !found || !sameToEngine(old, v):
			ops = append(ops, rewrite.Operation{Op: "add", Path: at, Value: []byte(v.Raw)})
		}
		return true
	})
	return ops
}

// sameToEngine compares as the engine does when it looks for a noop: keys in any order; 1 and 1.0 differ, 1.0 and 1.00 don't.
func sameToEngine(a, b gjson.Result) bool {
	switch {
	case a.Type != b.Type || a.IsObject() != b.IsObject():
		return false
	case a.Raw == b.Raw:
		return true
	case a.Type == gjson.String:
		return a.Str == b.Str
	case a.Type == gjson.Number:
		x, err1 := strconv.ParseFloat(a.Raw, 64)
		y, err2 := strconv.ParseFloat(b.Raw, 64)
		return decimal(a.Raw) && decimal(b.Raw) && x == y && err1 == nil && err2 == nil
	case a.IsArray():
		x, y := a.Array(), b.Array()
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameToEngine(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	x, y := a.Map(), b.Map()
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if w, found := y[k]; !found || !sameToEngine(v, w) {
			return false
		}
	}
	return true
}

func decimal(number string) bool { return strings.ContainsAny(number, ".eE") }

// transformUpdate performs an _update with `doc` under a rule that transforms, as a patch: the document is read, the part merged into it
// as the engine merges, then the transform applied, and the whole written under the guard of what was read. So a transform means the
// same for whoever sends a document and for whoever sends a part of it; put into the part, `default` would overwrite, `increment` count
// from nothing, and `now` make a write of every noop.
//
// taken is false for what only the engine can do, which is passed untransformed: an _update with a script; one through an ingest pipeline
// (unless it may run again), of a document that isn't seen whole, or by who may write but not read; and what isn't valid, so that the
// engine says what is wrong with it. An upsert is transformed as the document that it is.
func (s *Service) transformUpdate(ctx context.Context, c *change) (taken bool, err error) {
	query, plain := c.query, c.plain
	p := c.readPartial()
	if p == nil {
		return false, c.undone(query, plain)
	}
	c.patch, c.path, c.query = p, c.placeOf(), api.Without(nil, c.query, patchParams...)
	if c.readPatchQuery() {
		p.upserting()
		if p.upsert && c.once {
			return false, c.undone(query, plain)
		}
		taken, err = s.mayTransform(ctx, c)
	}
	if taken {
		err = s.edits(ctx, c)
		native := p.unfit || errors.Is(err, errNoGuard) || errors.Is(err, es.ErrForbidden) && c.outcome.Attempts == 0
		if taken = !native; native {
			err = nil
		}
	}
	if !taken && err == nil {
		return false, c.undone(query, plain)
	}
	return true, err
}

// upserting makes of what an _update says of upserts what it is made of: of its doc, if it says that, which counts more.
func (p *patch) upserting() {
	if p.upsert {
		p.first = p.incoming
	}
	p.upsert = p.first != nil
}

// undone makes the change what it was before it was taken for a patch, but for the reason why it isn't one.
func (c *change) undone(query []byte, plain bool) error {
	c.base.Release()
	*c = change{req: c.req, doc: c.doc, name: c.name, sent: c.sent, query: query, path: c.req.Op.Path, pipeline: c.pipeline,
		deadline: c.deadline, json: c.json, plain: plain, now: c.now, began: c.began, outcome: Outcome{Reason: c.outcome.Reason}}
	return nil
}

// mayTransform reports whether the change's document may be read, and written back whole.
func (s *Service) mayTransform(ctx context.Context, c *change) (bool, error) {
	if err := s.describe(ctx, c); err != nil {
		return false, err
	}
	if s.unpatchable(c) != nil {
		return false, nil
	}
	if c.outcome.Reason = c.neverPatchedAgain(); c.outcome.Reason != "" {
		return false, nil
	}
	if c.index.UUID == "" {
		return true, nil // there is no index, nor a document
	}
	whole, err := s.whole(ctx, c)
	switch {
	case err != nil:
		return false, cantAsk(err)
	case !whole:
		c.outcome.Reason = ReasonFiltered
	}
	return whole, nil
}

// readPartial reads the body of an _update as a part of a document, nil where it is more, or not valid: the engine takes no key twice. Half
// surrogates, which a key may have and no pointer can name, are the engine's, too.
func (c *change) readPartial() *patch {
	if !c.json || !c.readable() || !doc.ValidJSON(c.sent) || repeats(gjson.ParseBytes(c.sent)) || halved(c.sent) {
		return nil
	}
	for _, name := range [...]string{"upsert", "version", "version_type", "op_type", "lang", "_source_include", "_source_exclude"} {
		if _, said := api.Param(c.req.Op.Query, name); said {
			return nil
		}
	}
	p := &patch{retries: -1, media: field(c.req.Fields, "content-type")}
	if p.media == nil {
		p.media = jsonType.Value
	}
	ok := true
	gjson.ParseBytes(c.sent).ForEach(func(k, v gjson.Result) bool {
		ok = p.member(k.Str, v) || c.only && p.unrun(k.Str, v)
		return ok
	})
	if !ok || p.edit == nil {
		return nil
	}
	return p
}

// halved reports whether valid JSON has an escape in it that is half a character.
func halved(b []byte) bool {
	for i := bytes.IndexByte(b, '\\'); i >= 0 && i+1 < len(b); i++ {
		switch {
		case b[i] != '\\':
			continue
		case b[i+1] != 'u':
			i++ // what is escaped begins no escape
			continue
		}
		switch r := escaped(b[i:]); {
		case !utf16.IsSurrogate(r):
			i += 5
		case utf16.DecodeRune(r, escaped(b[min(i+6, len(b)):])) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

// escaped is the half or the whole character of the escape \uXXXX that a text begins with, else 0.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// repeats reports whether an object has a key twice.
func repeats(v gjson.Result) (found bool) {
	var seen map[string]bool
	if v.IsObject() {
		seen = map[string]bool{}
	} else if !v.IsArray() {
		return false
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if found = repeats(v); seen != nil && !found {
			name := k.String()
			found = seen[name]
			seen[name] = true
		}
		return !found
	})
	return found
}

// member reads one member of an _update's body.
func (p *patch) member(name string, v gjson.Result) bool {
	flag := v.Type == gjson.True || v.Type == gjson.False
	switch name {
	case "doc":
		alone := p.edit == nil // and no script
		p.edit, p.incoming = partial(v.Raw), []byte(v.Raw)
		return v.IsObject() && alone
	case "upsert":
		p.first = []byte(v.Raw)
		return v.IsObject()
	case "doc_as_upsert":
		p.upsert = v.Bool()
		return flag
	case "detect_noop":
		p.always = !v.Bool()
		return flag
	case "_source":
		p.said, p.asked = true, shown{asked: v.Bool()}
		return flag
	}
	return false
}
