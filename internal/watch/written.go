package watch

import (
	"optimist/internal/client"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/wire"
)

// BeginWrite begins to watch a write whose answer may show the document: see Written. Call it right before the write is sent.
func (rd *Reading) BeginWrite(w *Watcher, r *client.Request) {
	rd.of(w, r)
	rd.begin(true)
}

// Written stamps the document in the answer to an _update or a PATCH, if that shows the whole of it. With keep, the document is remembered
// for the client that brings the stamp back. Written returns the answer with the stamp in it, and the fields to add to the answer.
func (rd *Reading) Written(ru *rule.Rule, keep bool, answer []byte) (body []byte, fields []wire.Field) {
	defer rd.end()
	document := es.Member(answer, "get")
	ref, ok := rd.r.Ref()
	if document == nil || !ok {
		return answer, nil
	}
	d := &Document{Ref: ref, name: ref.Index, stamper: ru}
	d.read(answer, document)
	written := es.ParseItem(answer)
	if d.whole = d.Found && d.Source != nil && string(written.Result) != "deleted"; !d.whole { // a script may delete what it shows
		return answer, nil
	}
	if d.Index = written.Index; d.Index != nil {
		d.Ref.Index = string(d.Index)
	}
	if keep {
		rd.remember(d)
	}
	rd.stamp(d)
	return rd.stamps.into(answer), rd.stamps.report(rd.w.Metrics, nil)
}
