package write

import (
	"fmt"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"optimist/internal/patch"
	"optimist/internal/wire"
)

// writer is one client and what it does, one thing after another.
type writer struct {
	s    *stage
	name string
	c    *client
	view any // what it has seen of the document
	todo []func()
}

// kind is a kind of writers.
type kind uint8

const (
	saves kind = iota
	patches
	both
	deletes
	parts   // sends parts of what it has read, and saves
	blind   // saves what it hasn't read
	creates // only what isn't there
	passes  // by optimist
)

// kindsOfWriters are who meets: those of one kind may share a write.
var kindsOfWriters = [][]kind{{saves, both, patches, passes}, {saves, saves, saves, saves, both, passes}, {patches}, {both}, {saves, both, deletes},
	{blind, saves, patches}, {creates, blind, deletes, saves}, {parts}, {parts, saves, passes}, {parts, deletes, creates, patches}}

func (s *stage) writer(i int, k kind) *writer {
	name := fmt.Sprintf("w%d", i)
	wr := &writer{s: s, name: name, c: s.proxies[rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(s.rt, "proxy")].client(name)}
	switch k {
	case passes:
		wr.todo = append(wr.todo, wr.passBy(genMergePatch(s.rt)))
		return wr
	case blind:
		doc := genDoc(s.rt)
		wr.todo = append(wr.todo, func() { wr.overwrite(doc) })
		return wr
	case creates:
		doc := genDoc(s.rt)
		wr.todo = append(wr.todo, func() { wr.create(doc) })
		return wr
	}
	if k != patches {
		wr.todo = append(wr.todo, wr.read)
	}
	for n := range rapid.IntRange(1, 3).Draw(s.rt, "writes") {
		if k != patches && n > 0 && rapid.Bool().Draw(s.rt, "reads again") {
			wr.todo = append(wr.todo, wr.read)
		}
		if k == deletes {
			wr.todo = append(wr.todo, wr.delete, wr.read)
			continue
		}
		if k == patches || k == both && rapid.Bool().Draw(s.rt, "patches") {
			wr.todo = append(wr.todo, wr.patch())
			continue
		}
		if k == parts && rapid.IntRange(0, 3).Draw(s.rt, "sends a part") > 0 {
			wr.todo = append(wr.todo, wr.update())
			continue
		}
		mark := ""
		if rapid.Bool().Draw(s.rt, "marks") {
			mark = fmt.Sprintf("%s-%d", name, n)
		}
		edit := genEdit(s.rt, mark)
		wr.todo = append(wr.todo, func() { wr.save(edit) })
	}
	return wr
}

func (wr *writer) work() {
	for _, do := range wr.todo {
		wr.s.hold(wr.name)
		do()
	}
}

func (wr *writer) read() {
	if body := wr.c.read("1"); body == "" {
		wr.view = absent{}
	} else {
		wr.view = decodeModel(body)
	}
}

// save writes the document back with an edit. What was written is what the client has seen then.
func (wr *writer) save(edit func(o object)) {
	base := wr.view
	sent, ok := deep(base).(object)
	if !ok {
		sent = object{}
	}
	edit(sent)
	e := wr.s.begin(fmt.Sprintf("%s saves %s, based on %s", wr.name, encodeModel(sent), encodeModel(base)), func(doc any) []effect {
		return wr.s.rule.saved(base, sent, doc)
	})
	if wr.s.end(e, wr.c.save("1", encodeModel(sent))) {
		wr.view = sent
	}
}

// saved is what becomes of a document when sent is saved, which its client made of base.
func (r *ruleModel) saved(base any, sent object, doc any) []effect {
	in := &inputsModel{op: "index", incoming: sent, current: doc, base: base}
	transformed := func(v any) effect {
		after, failed := transformModel(r.steps, deep(v).(object), in)
		return effect{after, failed}
	}
	switch {
	case doc != any(absent{}):
	case base == any(absent{}) || r.recreates:
		return []effect{transformed(sent)}
	default:
		return []effect{{status: 409}}
	}
	clash := false
	merged := r.merge.merge("", base, sent, doc, &clash)
	switch {
	case clash:
		return []effect{{status: 409}}
	case !alike(merged, doc):
		return []effect{transformed(merged)}
	case alike(sent, doc):
		// Nobody may have written since: then it goes as it was sent. Else it is a noop.
		return []effect{{doc: doc}, transformed(sent)}
	}
	return []effect{{doc: doc}}
}

// patchModel is a PATCH with its model.
type patchModel struct {
	media, body string
	incoming    any // what of it the rule's steps can look at
	edit        func(doc object) (object, refusal)
}

// genPatch makes one of the three kinds of PATCH.
func genPatch(t *rapid.T) patchModel {
	switch rapid.IntRange(0, 2).Draw(t, "patch") {
	case 0:
		p := genMergePatch(t)
		return patchModel{patch.MediaMerge, encodeModel(p), p, func(doc object) (object, refusal) { return mergePatchModel(doc, p).(object), 0 }}
	case 1:
		ops := genJSONPatch(t)
		return patchModel{patch.MediaOperations, jsonOf(ops), absent{}, func(doc object) (object, refusal) { return jsonPatchModel(ops, doc) }}
	}
	var ops []stepModel
	for range rapid.IntRange(1, 3).Draw(t, "operations") {
		ops = append(ops, genStep(t, false))
	}
	return patchModel{patch.MediaSteps, jsonOf(ops), absent{}, func(doc object) (object, refusal) {
		return transformModel(ops, doc, &inputsModel{op: "patch", incoming: absent{}, current: deep(doc), base: absent{}})
	}}
}

// patch sends a PATCH. What the client has seen then is what it is shown, or else what it had seen with the patch applied, if it
// fits.
func (wr *writer) patch() func() {
	p, path := genPatch(wr.s.rt), "/shop/_doc/1"
	shown := rapid.Bool().Draw(wr.s.rt, "is shown the document")
	if shown {
		path += "?_source=true"
	}
	return func() {
		e := wr.s.begin(fmt.Sprintf("%s, who has seen %s, patches %s", wr.name, encodeModel(wr.view), p.body), func(doc any) []effect {
			return []effect{wr.s.rule.patched(&p, doc)}
		})
		r := wr.c.send("PATCH", path, p.body, wire.Field{Name: []byte("Content-Type"), Value: []byte(p.media)})
		saw, hasSeen := wr.view.(object)
		switch {
		case !wr.s.end(e, r):
		case shown:
			wr.view = decodeModel(gjson.Get(r.body, "get._source").Raw)
		case hasSeen:
			if after, failed := p.edit(deep(saw).(object)); failed == 0 {
				wr.view = after
			}
		}
	}
}

// patched is what becomes of a document when it is patched.
func (r *ruleModel) patched(p *patchModel, doc any) effect {
	if doc == any(absent{}) {
		return effect{status: 404}
	}
	after, failed := p.edit(deep(doc).(object))
	if failed != 0 || alike(after, doc) {
		return effect{doc, failed}
	}
	after, failed = transformModel(r.steps, after, &inputsModel{op: "patch", incoming: p.incoming, current: doc, base: absent{}})
	return effect{after, failed}
}

// update sends a part of the document. What the client has seen then is what it had seen, with the part in it, or what it is shown.
func (wr *writer) update() func() {
	p, path, upsert := genMergePatch(wr.s.rt), "/shop/_update/1", rapid.Bool().Draw(wr.s.rt, "doc_as_upsert")
	body := object{"doc": p}
	if upsert {
		body["doc_as_upsert"] = true
	}
	shown := rapid.IntRange(0, 3).Draw(wr.s.rt, "is shown the document") == 0
	if shown {
		body["_source"] = true
	}
	return func() {
		base := wr.view
		e := wr.s.begin(fmt.Sprintf("%s, who has seen %s, updates %s", wr.name, encodeModel(base), encodeModel(body)), func(doc any) []effect {
			return wr.s.rule.updated(base, p, upsert, doc)
		})
		r := wr.c.send("POST", path, encodeModel(body))
		saw, hasSeen := base.(object)
		switch {
		case !wr.s.end(e, r):
		case shown:
			wr.view = decodeModel(gjson.Get(r.body, "get._source").Raw)
		case hasSeen:
			wr.view = merged(deep(saw).(object), p)
		case upsert:
			wr.view = deep(p)
		default:
			wr.read() // what the engine has made of it
		}
	}
}

// updated is what becomes of a document by a part of it, which its client made of base.
func (r *ruleModel) updated(base any, part object, upsert bool, doc any) []effect {
	transformed := func(v any) []effect {
		after, failed := transformModel(r.steps, deep(v).(object), &inputsModel{op: "update", incoming: part, current: doc, base: base})
		return []effect{{after, failed}}
	}
	saw, hasSeen := base.(object)
	switch {
	case doc != any(absent{}):
	case !upsert:
		return []effect{{status: 404}}
	case hasSeen && !r.recreates:
		return []effect{{status: 409}}
	default:
		return transformed(part)
	}
	change := part
	if hasSeen || upsert {
		sent, clash := merged(object{}, part), false
		if hasSeen {
			sent = merged(deep(saw).(object), part)
		}
		whole := r.merge.merge("", base, sent, doc, &clash)
		if clash {
			return []effect{{status: 409}}
		}
		change = projected(part, whole.(object))
	}
	after := merged(deep(doc).(object), change)
	if alike(after, doc) {
		return []effect{{doc: doc}}
	}
	return transformed(after)
}

// projected is a part with the values of a document.
func projected(part, doc object) object {
	out := object{}
	for name, v := range part {
		value, there := doc[name]
		sub, isObject := v.(object)
		if into, is := value.(object); is && isObject {
			out[name] = projected(sub, into)
		} else if there {
			out[name] = value
		}
	}
	return out
}

// delete takes the document away.
func (wr *writer) delete() {
	base := wr.view
	e := wr.s.begin(fmt.Sprintf("%s, who has seen %s, deletes", wr.name, encodeModel(base)), func(doc any) []effect {
		switch {
		case doc == any(absent{}):
			return []effect{{status: 404}}
		case base == any(absent{}) || wr.s.rule.merge.fallback == "sent":
			return []effect{{doc: absent{}}}
		}
		return []effect{{doc: absent{}}, {status: 409}} // nobody may have written since
	})
	wr.s.end(e, wr.c.send("DELETE", "/shop/_doc/1", ""))
}

// passBy is a client that knows nothing of optimist: it has the engine merge, at one go.
func (wr *writer) passBy(p object) func() {
	return func() {
		e := wr.s.begin(fmt.Sprintf("%s passes by with %s", wr.name, encodeModel(p)), func(doc any) []effect {
			if doc == any(absent{}) {
				return []effect{{status: 404}}
			}
			return []effect{{doc: merged(deep(doc).(object), p)}}
		})
		status, answer := wr.s.proxies[0].direct("POST", "/shop/_update/1", `{"doc":`+encodeModel(p)+`}`)
		if gjson.Get(answer, "result").Str == "updated" {
			wr.s.stored(decodeModel(wr.s.proxies[0].stored("1")))
		}
		wr.s.end(e, result{status: status, body: answer})
	}
}

// merged is what an _update makes of a document: objects are merged, null is a value.
func merged(doc, part object) object {
	for name, v := range part {
		into, is := doc[name].(object)
		if sub, ok := v.(object); ok && is {
			doc[name] = merged(into, sub)
		} else {
			doc[name] = deep(v)
		}
	}
	return doc
}

// overwrite saves a document that the client hasn't read.
func (wr *writer) overwrite(sent object) {
	s := wr.s
	var e *event
	e = s.begin(fmt.Sprintf("%s overwrites with %s", wr.name, encodeModel(sent)), func(doc any) []effect {
		if !s.rule.fetches && !s.rule.readsCurrent() {
			after, failed := transformModel(s.rule.steps, deep(sent).(object), &inputsModel{op: "index", incoming: sent, current: absent{}, base: absent{}})
			return []effect{{after, failed}}
		}
		// Some revision of its time is its base.
		var all []effect
		for at := e.start; at <= e.end; at++ {
			all = append(all, s.rule.saved(s.revision(at), sent, doc)...)
		}
		return all
	})
	s.end(e, wr.c.save("1", encodeModel(sent)))
}

// create saves a document if there is none.
func (wr *writer) create(sent object) {
	s := wr.s
	e := s.begin(fmt.Sprintf("%s creates %s", wr.name, encodeModel(sent)), func(doc any) []effect {
		after, failed := transformModel(s.rule.steps, deep(sent).(object), &inputsModel{op: "create", incoming: sent, current: absent{}, base: absent{}})
		if doc != any(absent{}) && failed == 0 {
			failed = 409
		}
		return []effect{{after, failed}}
	})
	s.end(e, wr.c.send("PUT", "/shop/_create/1", encodeModel(sent)))
}
