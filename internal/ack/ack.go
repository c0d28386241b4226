// Package ack reads the engine's answers to writes: the revision that was stored, the part of the document that is shown, the
// reason of a refusal.
//
// It does no I/O, and decides nothing.
package ack

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v4"

	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// maxInflated bounds what is taken out of a compressed answer, in bytes.
const maxInflated = 1 << 20

// Ack is what the engine says of a write that it acknowledged. Its Source is nil.
type Ack struct {
	doc.Revision
	Created  bool // there was no document
	Numbered bool // the answer has the revision's numbers: not under a filter_path, say, nor where it isn't JSON
	// Missed says that nothing of it is in the document that was written: an ingest pipeline dropped what was sent, or took it to another
	// document.
	Missed    bool
	Index     string // of the document that it is about, if it is Missed
	Deleted   bool   // the document is gone: an _update may have a script that deletes it
	Unchanged bool   // the engine had nothing to change

	hasResult bool // the answer says what the engine did
}

// Read reads an acknowledgement of a write of the document ref. An index without a name is any.
func Read(res *upstream.Response, ref doc.Ref) Ack { return Of(res, nil, ref) }

// Of is Read of an answer that somebody has read already; nil: nobody has.
func Of(res *upstream.Response, it *es.Item, ref doc.Ref) (a Ack) {
	if it == nil {
		read := es.ParseItem(plain(res.Fields, res.Payload))
		it = &read
	}
	a.Created = res.Status == http.StatusCreated
	a.Numbers, a.Version, a.Numbered = it.Numbers, it.Version, it.Numbered
	a.Deleted, a.Unchanged, a.hasResult = string(it.Result) == "deleted", string(it.Result) == "noop", len(it.Result) > 0
	if a.Missed = a.Dropped() || it.IsElsewhere(ref.Index, ref.ID); a.Missed && !a.Dropped() {
		a.Index = string(it.Index)
	}
	return a
}

// Is reports whether a success is the engine's acknowledgement of the write r. It may be the answer of something between that has sent
// nothing on: a page that asks for a login, say. It may be the answer to a read, which has no result. What the client wants to see of the
// answer may hide what shows that: then a JSON object, or any answer in another format, is taken for an acknowledgement.
func Is(res *upstream.Response, r *upstream.Request) bool {
	body := plain(res.Fields, res.Payload)
	if es.IsResult(body) {
		return true // the common case
	}
	_, query, _ := bytes.Cut(r.Target, []byte("?"))
	if _, given := uri.Param(query, "format"); given || !wire.AcceptsJSON(r.Fields) || !wire.JSONMedia(r.Fields) {
		return true
	}
	_, filtered := uri.Param(query, "filter_path")
	return filtered && jsontext.LooksLikeObject(body)
}

// Shown is the document that the answer to an _update shows, which asked for all of it; nil if it isn't there.
func Shown(res *upstream.Response) []byte {
	body, err := coding.Decode(res.Payload, res.Get("content-encoding"), maxInflated)
	source := gjson.GetBytes(body, "get._source")
	if err != nil || !source.IsObject() {
		return nil
	}
	return []byte(source.Raw)
}

// IsOfEarlier reports whether this is the acknowledgement of an earlier write than the one that had the guard: what a guarded write leaves
// is newer than its guard. An answer may come twice, and the second time after the next request. If the engine finds an _update unchanged,
// it answers with the numbers of the guard. The client's filter_path may hide that, so equal numbers count only if the answer has a result.
func (a *Ack) IsOfEarlier(guard doc.Numbers, isUpdate bool) bool {
	switch {
	case !a.Numbered || a.Missed || a.Unchanged || !guard.Known() || a.PrimaryTerm != guard.PrimaryTerm:
		return false
	case a.SeqNo == guard.SeqNo:
		return a.hasResult || !isUpdate
	}
	return a.SeqNo < guard.SeqNo
}

// Dropped reports whether an ingest pipeline has dropped the write.
func (a *Ack) Dropped() bool { return a.Version < 0 }

// IsDropped reports whether an ingest pipeline has dropped the write: the engine says that it had nothing to change, in a version that no
// document has.
func IsDropped(res *upstream.Response) bool {
	a := Read(res, doc.Ref{})
	return a.Dropped()
}

// IsOf reports whether a conflict may be about the document with this id: the engine's reason begins with the document's id.
func (f *Refusal) IsOf(id string) bool {
	if f.Type != "version_conflict_engine_exception" || f.Reason == "" || id == "" {
		return true // it names no document, or the engine has made the id
	}
	return strings.HasPrefix(f.Reason, "["+id+"]") || !utf8.ValidString(id)
}

// SaysMissing reports whether a 404 says that there is no such document: it may be the index that isn't there, or no alias.
func SaysMissing(res *upstream.Response) bool {
	return bytes.Contains(plain(res.Fields, res.Payload), []byte(`"document_missing_exception"`))
}

// RefusesGuard reports whether a 400 says that the index has no sequence numbers to compare with. The engine has no error type of its own
// for it; the setting's name is part of the reason.
func RefusesGuard(res *upstream.Response) bool {
	return bytes.Contains(plain(res.Fields, res.Payload), []byte("disable_sequence_numbers"))
}

// Refusal is why the engine refuses a request.
type Refusal struct {
	Type, Reason string
	Index, Shard string // about which it refuses it, where it says so
}

// Why reads the refusal in an answer: zero if nothing is refused, or if the answer is neither JSON nor YAML. The engine serves errors
// whole, whatever filter_path says.
func Why(fields []wire.Field, body []byte) (f Refusal) {
	body = plain(fields, body)
	if !bytes.Contains(wire.Value(fields, "content-type"), []byte("yaml")) {
		e := gjson.GetBytes(body, "error")
		return Refusal{e.Get("type").Str, e.Get("reason").Str, e.Get("index").Str, e.Get("shard").String()}
	}
	var answer struct{ Error Refusal }
	if yaml.Unmarshal(body, &answer) != nil {
		return Refusal{}
	}
	return answer.Error
}

// plain is a body without its content coding; nil if that can't be taken off. A client accepts a coding, and then the engine uses it. A
// balancer may compress an answer although nobody has asked for that.
func plain(fields []wire.Field, body []byte) []byte {
	body, err := coding.Decode(body, wire.Value(fields, "content-encoding"), maxInflated)
	if err != nil && !errors.Is(err, coding.ErrTooLarge) {
		return nil
	}
	return body
}
