package write

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Answer is what the client gets. Call Release when it has been written.
type Answer struct {
	Status int
	Fields []wire.Field // end-to-end fields, without the body's length
	Body   []byte
	Own    bool // made here, not by the engine: whoever writes it adds what the engine's answers carry for its clients' checks
	source *upstream.Response

	// Room for what nearly every answer has, so that it is one piece of memory.
	fields  [8]wire.Field
	etag    [32]byte
	outcome [64]byte
}

// Release gives the answer's buffers back. Fields and Body are void after it.
func (a *Answer) Release() {
	if a.source != nil {
		a.source.Release()
		a.source = nil
	}
}

var (
	outcomeName = []byte("Optimist-Outcome")
	etagName    = []byte("ETag")
	jsonType    = wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")}
)

func (a *Answer) setOutcome(o *Outcome) {
	a.Fields = append(a.Fields, wire.Field{Name: outcomeName, Value: o.Append(a.outcome[:0])})
}

// AppendETag appends the entity tag that stands for a revision.
func AppendETag(dst []byte, n doc.Numbers) []byte {
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, n.SeqNo, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, n.PrimaryTerm, 10)
	return append(dst, '"')
}

// ParseETag reads what AppendETag writes.
func ParseETag(b []byte) (n doc.Numbers, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) < 5 || b[0] != '"' || b[len(b)-1] != '"' {
		return n, false
	}
	seq, term, found := bytes.Cut(b[1:len(b)-1], []byte("-"))
	if !found {
		return n, false
	}
	var err1, err2 error
	n.SeqNo, err1 = strconv.ParseInt(string(seq), 10, 64)
	n.PrimaryTerm, err2 = strconv.ParseInt(string(term), 10, 64)
	return n, err1 == nil && err2 == nil && n.SeqNo >= 0 && n.PrimaryTerm > 0
}

// passOn makes the engine's answer the client's, as it is.
func passOn(res *upstream.Response) *Answer {
	a := &Answer{Status: res.Status, Body: res.Payload, source: res}
	a.Fields = withoutLength(res.EndToEnd(a.fields[:0]))
	return a
}

// withoutLength takes the length of a body out of its fields, in place.
func withoutLength(fields []wire.Field) []wire.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !wire.EqualFold(f.Name, "content-length") {
			kept = append(kept, f)
		}
	}
	return kept
}

// copyOf is an answer that lives on its own, for the others whose changes were in the same write.
func copyOf(res *upstream.Response) *Answer {
	a := passOn(res)
	a.source = nil
	a.Body = bytes.Clone(a.Body)
	for i, f := range a.Fields {
		a.Fields[i] = wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	return a
}

// ack is what the engine says of an acknowledged write.
type ack struct {
	doc.Revision
	created bool
}

// maxInflated bounds what is taken out of a compressed answer to a write, in bytes.
const maxInflated = 1 << 20

// readAck reads the engine's answer to a write. ok is false where it lacks the numbers (filter_path, or not JSON); whether the document
// was made by it the status tells, too.
func readAck(res *upstream.Response) (a ack, ok bool) {
	a.created = res.Status == 201
	body := res.Payload
	if value := res.Get("content-encoding"); value != nil {
		if !coding.IsGzip(value) {
			return a, false
		}
		var err error
		if body, err = coding.Gunzip(body, maxInflated); err != nil && !errors.Is(err, coding.ErrTooLarge) {
			return a, false
		}
	}
	it := es.ParseItem(body)
	a.Numbers, a.Version = it.Numbers, it.Version
	return a, it.Numbered
}

// tell puts numbers that aren't the engine's into an answer: those of the client's base, where what was stored differs from what the
// client sent. A later guard of the client's with them conflicts, instead of overwriting what it hasn't seen.
func (a *Answer) tell(n doc.Numbers) {
	a.Body = setNumber(a.Body, "_seq_no", n.SeqNo)
	a.Body = setNumber(a.Body, "_primary_term", n.PrimaryTerm)
}

func (a *Answer) setETag(t tag) {
	a.Fields = append(a.Fields, wire.Field{Name: etagName, Value: t.append(a.etag[:0])})
}

// setNumber replaces a number at the top of a JSON object, all other bytes kept.
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

// noop is the engine's own answer to a write that changes nothing, as _update gives it.
func noop(d es.Document, rev doc.Revision) *Answer { return written(d, rev, "noop", 200) }

// notFound is the engine's answer to the delete of a document that isn't there.
func notFound(d es.Document, rev doc.Revision) *Answer { return written(d, rev, "not_found", 404) }

func written(d es.Document, rev doc.Revision, result string, status int) *Answer {
	b := append(make([]byte, 0, 160), `{"_index":`...)
	b = gjson.AppendJSONString(b, d.Index)
	if d.Type != "" {
		b = append(b, `,"_type":`...)
		b = gjson.AppendJSONString(b, d.Type)
	}
	b = append(b, `,"_id":`...)
	b = gjson.AppendJSONString(b, d.ID)
	b = append(b, `,"_version":`...)
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
	b = append(b, '}')
	return &Answer{Status: status, Fields: []wire.Field{jsonType}, Body: b, Own: true}
}

// conflict is a version conflict in the engine's shape, for what this proxy decided on a fresh read.
func conflict(d es.Document, reason string) *Answer {
	return refuseIn(d.Index, 409, "version_conflict_engine_exception", "["+d.ID+"]: version conflict, "+reason)
}

// refuse makes an error in the engine's shape.
func refuse(status int, kind, reason string) *Answer { return refuseIn("", status, kind, reason) }

// refuseIn is refuse for what is wrong with a document of an index.
func refuseIn(index string, status int, kind, reason string) *Answer {
	entry := append(make([]byte, 0, 200), `"type":`...)
	entry = gjson.AppendJSONString(entry, kind)
	entry = gjson.AppendJSONString(append(entry, `,"reason":`...), reason)
	if index != "" {
		entry = gjson.AppendJSONString(append(entry, `,"index":`...), index)
	}
	b := append(make([]byte, 0, 2*len(entry)+60), `{"error":{"root_cause":[{`...)
	b = append(append(b, entry...), `}],`...)
	b = append(append(b, entry...), `},"status":`...)
	b = append(strconv.AppendInt(b, int64(status), 10), '}')
	return &Answer{Status: status, Fields: []wire.Field{jsonType}, Body: b, Own: true}
}
