// Package respond makes the answers that clients get: the engine's own, passed on, and optimist's own, in the engine's shape.
//
// It decides nothing: the caller says what the answer contains. It writes to no connection.
package respond

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Answer is what the client gets. Call Release when it has been written. It is for one goroutine at a time.
type Answer struct {
	Status int
	Fields []wire.Field // end-to-end fields, without the body's length
	Body   []byte
	Own    bool // made here, not by the engine: whoever writes it adds what the engine's answers carry for its clients' checks
	OfAll  bool // the engine's to several requests at once, see upstream.Response
	source *upstream.Response

	// Room for what nearly every answer has: so an answer is one piece of memory.
	fields [8]wire.Field
	values [96]byte
	used   int // of values
}

// IsRefusal reports whether the answer is an error, and doesn't only say that there is no such document.
func (a *Answer) IsRefusal() bool { return a.Status >= 400 && a.Status != http.StatusNotFound }

// Release gives the answer's buffers back. Fields and Body are void after it. Nil: there is no answer.
func (a *Answer) Release() {
	if a != nil && a.source != nil {
		a.source.Release()
		a.source = nil
	}
}

// JSON is the Content-Type of answers that are made here.
var JSON = wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")}

// Add adds a field. appendValue appends its value to what it is given.
func (a *Answer) Add(name []byte, appendValue func([]byte) []byte) {
	v := appendValue(a.values[a.used:a.used])
	a.used = min(a.used+len(v), len(a.values))
	a.Fields = append(a.Fields, wire.Field{Name: name, Value: v})
}

// FromEngine makes the engine's answer the client's, as it is.
func FromEngine(res *upstream.Response) *Answer { return new(Answer).FromEngine(res) }

// FromEngine is the function of that name for an Answer that takes no new memory: nobody may use what it was before.
func (a *Answer) FromEngine(res *upstream.Response) *Answer {
	*a = Answer{}
	a.Status, a.Body, a.OfAll, a.source = res.Status, res.Payload, res.OfAll, res
	a.Fields = slices.DeleteFunc(res.EndToEnd(a.fields[:0]), func(f wire.Field) bool { return wire.EqualFold(f.Name, "content-length") })
	return a
}

// CopyEngine is FromEngine for an answer that outlives res.
func CopyEngine(res *upstream.Response) *Answer {
	a := FromEngine(res)
	a.source = nil
	a.Body = bytes.Clone(a.Body)
	for i, f := range a.Fields {
		a.Fields[i] = wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	return a
}

// Clone is an answer of its own with what a says. a must live as long as it.
func (a *Answer) Clone() *Answer {
	return &Answer{Status: a.Status, Fields: slices.Clone(a.Fields), Body: a.Body, Own: a.Own, OfAll: a.OfAll}
}

// Revision is what the answer to a write says of the revision that it left; zero: nothing. a may be nil.
func (a *Answer) Revision() (r doc.Revision) {
	if a != nil && a.Status < 300 {
		v := gjson.GetManyBytes(a.Body, "_seq_no", "_primary_term", "_version")
		if v[0].Exists() && v[1].Exists() {
			r.Numbers, r.Version = doc.Numbers{SeqNo: v[0].Int(), PrimaryTerm: v[1].Int()}, v[2].Int()
		}
	}
	return r
}

// SetNumbers puts numbers that aren't the engine's into the answer to a write, all other bytes kept.
func (a *Answer) SetNumbers(n doc.Numbers) {
	a.Body = setNumber(a.Body, "_seq_no", n.SeqNo)
	a.Body = setNumber(a.Body, "_primary_term", n.PrimaryTerm)
}

// setNumber replaces a number at the top of a JSON object.
func setNumber(body []byte, key string, n int64) []byte {
	v := gjson.GetBytes(body, key)
	if v.Type != gjson.Number || v.Index == 0 {
		return body
	}
	var buf [20]byte
	number := strconv.AppendInt(buf[:0], n, 10)
	if string(number) == v.Raw {
		return body
	}
	return slices.Concat(body[:v.Index], number, body[v.Index+len(v.Raw):])
}

// The results of a write, as the engine's answers name them.
const (
	Created  = "created"
	Updated  = "updated"
	Deleted  = "deleted"
	Noop     = "noop"
	NotFound = "not_found"
)

// Document is a document as the engine's answers name it. Type is empty where the engine names none.
type Document struct{ Index, Type, ID string }

// begin is the beginning of an answer of about that size: an object with the document's names. A document that isn't made has no id.
func (d *Document) begin(size int) []byte {
	b := gjson.AppendJSONString(append(make([]byte, 0, size), `{"_index":`...), d.Index)
	if d.Type != "" {
		b = gjson.AppendJSONString(append(b, `,"_type":`...), d.Type)
	}
	if d.ID != "" {
		b = gjson.AppendJSONString(append(b, `,"_id":`...), d.ID)
	}
	return b
}

// Written is the engine's answer to a write of the document that left rev.
func Written(d Document, rev doc.Revision, result string) *Answer {
	b := append(d.begin(160), `,"_version":`...)
	b = strconv.AppendInt(b, rev.Version, 10)
	b = append(b, `,"result":"`...)
	b = append(b, result...)
	b = append(b, `","_shards":{"total":0,"successful":0,"failed":0}`...)
	if rev.Known() { // the engine leaves out numbers that it hasn't given
		b = append(b, `,"_seq_no":`...)
		b = strconv.AppendInt(b, rev.SeqNo, 10)
		b = append(b, `,"_primary_term":`...)
		b = strconv.AppendInt(b, rev.PrimaryTerm, 10)
	}
	status := http.StatusOK
	switch result {
	case Created:
		status = http.StatusCreated
	case NotFound:
		status = http.StatusNotFound
	}
	return own(status, append(b, '}'))
}

// own is an answer of optimist's in JSON.
func own(status int, body []byte) *Answer { return Own(status, []wire.Field{JSON}, body) }

// Own is an answer of optimist's with those fields, its Content-Type among them.
func Own(status int, fields []wire.Field, body []byte) *Answer {
	a := &Answer{Status: status, Body: body, Own: true}
	a.Fields = append(a.fields[:0], fields...)
	return a
}

// Error is an error in the engine's shape.
func Error(status int, kind, reason string) *Answer {
	return own(status, (&api.Error{Status: status, Type: kind, Reason: reason}).Append(nil))
}

// ErrorIn is Error for what is wrong with a document of an index.
func ErrorIn(index string, status int, kind, reason string) *Answer {
	return own(status, (&api.Error{Status: status, Type: kind, Reason: reason, Index: index}).Append(nil))
}

// Conflict is the engine's version conflict about a document.
func Conflict(index, id, reason string) *Answer {
	return ErrorIn(index, http.StatusConflict, "version_conflict_engine_exception", "["+id+"]: version conflict, "+reason)
}

// Exists is the engine's refusal to create a document that is there.
func Exists(index, id string, version int64) *Answer {
	return Conflict(index, id, "document already exists (current version ["+strconv.FormatInt(version, 10)+"])")
}

// NoSuchIndex is the engine's answer if an index is missing, or isn't of the kind that is needed: more says why.
func NoSuchIndex(name, more string) *Answer {
	cause := gjson.AppendJSONString([]byte(`{"type":"index_not_found_exception","reason":`), "no such index ["+name+"]"+more)
	if more == "" {
		cause = gjson.AppendJSONString(append(cause, `,"resource.type":"index_or_alias","resource.id":`...), name)
	}
	cause = gjson.AppendJSONString(append(cause, `,"index_uuid":"_na_","index":`...), name)
	return own(http.StatusNotFound, api.AppendError(nil, append(cause, '}'), nil, http.StatusNotFound))
}

// Kept is the answer to a write that was not made, and is kept as a dead letter.
func Kept(d Document, id, reason string) *Answer {
	b := append(d.begin(200), `,"result":"dead_letter","dead_letter":{"id":`...)
	b = gjson.AppendJSONString(b, id)
	b = gjson.AppendJSONString(append(b, `,"reason":`...), reason)
	a := own(http.StatusAccepted, append(b, '}', '}'))
	a.Add(letterName, func(dst []byte) []byte { return append(dst, id...) })
	return a
}

var letterName = []byte("Optimist-Dead-Letter")
