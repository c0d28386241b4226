package bulk

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/es"
	"optimist/internal/jsontext"
)

// Result is the engine's answer to one item, in the form of an answer to a single write.
type Result struct {
	Status  int
	Body    []byte
	element []byte // the engine's element, which the client gets as it stands; nil: AppendItem makes one from Status and Body
	failed  bool   // element has an error
	ofAll   bool   // the engine refused the whole bulk, see upstream.Response
	// For an item that the engine refused, in the engine's words: the name of the action, quoted, and the members that name the document.
	action, place []byte
}

// results goes through the items of an answer to a bulk, in one pass. The Results are in the answer's memory.
type results struct{ answer, items jsontext.Scanner }

// next reads the next item. With asIs, the client gets the engine's element as it stands. Otherwise the Result is in the form of an answer
// to a single write, apart from the status in it: see alone. members are those of the element. ok is false for an item that can't be
// read, and behind the last one.
func (r *results) next(asIs bool) (res Result, members es.Item, ok bool) {
	if r.items.IsObject() || !r.items.Enter() {
		return res, members, false
	}
	action := r.items.Inner()
	if members, ok = es.ReadResult(&action); !ok || members.Status == 0 || !r.items.Leave(&action) {
		return res, members, false
	}
	element := r.items.Text()
	res.Status, res.Body = members.Status, element[action.Value:action.End]
	switch {
	case asIs:
		res.element, res.failed = element, members.Failure != nil
	case members.Failure != nil:
		res.place, res.action = placeOf(res.Body), element[action.Key:action.KeyEnd]
		res.Body = api.AppendError(nil, members.Failure, nil, res.Status)
	}
	return res, members, true
}

// alone takes the status out of a Result. It changes the answer, which can't be read again afterwards.
func (res *Result) alone(members *es.Item) {
	if res.element == nil && members.Failure == nil {
		res.Body = members.WithoutStatus(res.Body)
	}
}

// end reports whether the item that was read last is the last of the answer.
func (r *results) end() bool { return r.answer.Leave(&r.items) }

// placeOf is the members that name the document, in the engine's words: "_index":…,"_id":…
func placeOf(inner []byte) (place []byte) {
	for m := jsontext.Scan(inner); m.Next(); {
		switch string(m.Name()) {
		case "_index", "_type", "_id":
			if len(place) > 0 {
				place = append(place, ',')
			}
			place = append(place, inner[m.Key:m.End]...)
		}
	}
	return place
}

// AppendItem appends a result as an element of the items of an answer to a bulk. failed reports whether it is an error.
func (it *Item) AppendItem(dst []byte, res Result) (out []byte, failed bool) {
	if res.element != nil {
		return append(dst, res.element...), res.failed
	}
	var failure []byte
	if res.Status >= 300 || res.Status < 200 {
		failure = es.Member(res.Body, "error")
	}
	if failure == nil && len(res.Body) > 2 && res.Body[0] == '{' {
		body := bytes.TrimRight(res.Body, " \r\n\t")
		dst = append(append(append(dst, '{', '"'), it.Verb...), `":`...)
		dst = append(append(dst, body[:len(body)-1]...), `,"status":`...)
		return append(strconv.AppendInt(dst, int64(res.Status), 10), '}', '}'), false
	}
	dst = it.appendPlace(append(dst, '{'))
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(res.Status), 10)
	dst = append(dst, `,"error":`...)
	switch {
	case failure == nil || failure[0] != '{': // the answer isn't the engine's
		dst = append(dst, `{"type":"unknown_error","reason":`...)
		dst = append(gjson.AppendJSONString(dst, string(res.Body[:min(len(res.Body), maxReason)])), '}')
	default:
		dst = appendWithoutCauses(dst, failure)
	}
	return append(dst, '}', '}'), true
}

// appendPlace appends the name of the action, and the members that name the document: in the engine's words if there are any, else in the
// client's.
func (it *Item) appendPlace(dst []byte) []byte {
	if len(it.action) > 0 {
		dst = append(append(dst, it.action...), ':', '{')
	} else {
		dst = append(append(append(dst, '"'), it.Verb...), `":{`...)
	}
	if len(it.place) > 0 {
		return append(dst, it.place...)
	}
	dst = gjson.AppendJSONString(append(dst, `"_index":`...), it.Index)
	switch {
	case it.Type == "" && it.hasTypes:
		dst = append(dst, `,"_type":"_doc"`...)
	case it.Type != "":
		dst = gjson.AppendJSONString(append(dst, `,"_type":`...), it.Type)
	}
	if dst = append(dst, `,"_id":`...); it.ID == "" {
		return append(dst, "null"...)
	}
	return gjson.AppendJSONString(dst, it.ID)
}

// maxReason bounds the reason of an error that isn't the engine's, in bytes.
const maxReason = 512

// appendWithoutCauses appends an error without its root causes, which items don't have.
func appendWithoutCauses(dst, failure []byte) []byte {
	dst = append(dst, '{')
	first := len(dst)
	for s := jsontext.Scan(failure); s.Next(); {
		if string(s.Name()) == "root_cause" {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(dst, failure[s.Key:s.End]...)
	}
	return append(dst, '}')
}

// Summary is what an answer to a bulk says before its items.
type Summary struct {
	Took   time.Duration
	Failed bool // the result of an item is an error
	// TookFirst says that the engine names took before errors.
	TookFirst bool
	// Ingest is how long ingest pipelines took. Negative: there were none.
	Ingest int64
}

// read reads what an answer says before its items, and returns these.
func (s *Summary) read(answer []byte) (of results) {
	s.Ingest = -1
	failed := false
	of.answer = jsontext.Scan(answer)
	for top := &of.answer; top.IsObject() && top.Enter(); {
		name := string(top.Name())
		if name == "items" {
			of.items = top.Inner()
			break
		}
		if !top.Skip() {
			break
		}
		switch name {
		case "took":
			s.TookFirst = !failed
		case "errors":
			failed = true
		case "ingest_took":
			if n, ok := number(top.Text()); ok {
				s.Ingest = n
			}
		}
	}
	return of
}

// Append appends the answer up to its first item. After the last item the caller appends "]}".
func (s *Summary) Append(dst []byte) []byte {
	took := func() {
		dst = strconv.AppendInt(append(dst, `"took":`...), s.Took.Milliseconds(), 10)
		if s.Ingest >= 0 {
			dst = strconv.AppendInt(append(dst, `,"ingest_took":`...), s.Ingest, 10)
		}
	}
	failed := func() { dst = strconv.AppendBool(append(dst, `"errors":`...), s.Failed) }
	first, second := failed, took
	if s.TookFirst {
		first, second = took, failed
	}
	dst = append(dst, '{')
	first()
	dst = append(dst, ',')
	second()
	return append(dst, `,"items":[`...)
}

func number(text []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}
