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
	element []byte // the engine's element, which the client gets as it stands; nil: the element is made from Status and Body
	failed  bool   // element has an error
	// Of an item that the engine refused: the name of the action, quoted, and the members that name the document, as the engine says them.
	action, place []byte
	id            []byte // of the document, as the engine's answer has it; good as long as that is
}

// readResult makes a Result of an element of the engine's items: without the status, and with an error in the form that a single
// write gets.
func readResult(element []byte) (res Result, ok bool) {
	s := jsontext.Scan(element)
	if !s.IsObject() || !s.Next() {
		return res, false
	}
	inner := s.Text()
	var failure []byte
	from, to := 0, 0
	for m, before := jsontext.Scan(inner), -1; m.Next(); before = m.Comma {
		switch string(m.Name()) {
		case "error":
			failure = m.Text()
		case "_id":
			res.id = m.Text()
		case "status":
			n, err := strconv.Atoi(string(m.Text()))
			if err != nil {
				return res, false
			}
			res.Status = n
			if from, to = m.Key, m.End; m.Comma >= 0 {
				to = m.Comma + 1
			} else if before >= 0 {
				from = before
			}
		}
	}
	switch {
	case res.Status == 0:
		return res, false
	case failure == nil:
		res.Body = append(bytes.Clone(inner[:from]), inner[to:]...)
		return res, true
	}
	res.Body, res.place = api.AppendError(nil, failure, nil, res.Status), placeOf(inner)
	res.action = bytes.Clone(element[s.Key:s.KeyEnd])
	return res, true
}

// placeOf is the members that name the document, as the engine says them: "_index":…,"_id":…
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

// readAsIs is readResult for an item whose client gets the element as it stands.
func readAsIs(element []byte) (res Result, ok bool) {
	s := jsontext.Scan(element)
	if !s.IsObject() || !s.Next() {
		return res, false
	}
	value := s.Value
	for m := jsontext.Scan(s.Text()); m.Next(); {
		switch string(m.Name()) {
		case "error":
			res.failed = true
		case "_id":
			res.id = m.Text()
		case "status":
			n, err := strconv.Atoi(string(m.Text()))
			if err != nil {
				return res, false
			}
			res.Status = n
		}
	}
	res.element = bytes.Clone(element)
	res.Body = res.element[value:s.End]
	return res, res.Status != 0
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
	case failure == nil || failure[0] != '{': // no answer of the engine's
		dst = append(dst, `{"type":"unknown_error","reason":`...)
		dst = append(gjson.AppendJSONString(dst, string(res.Body[:min(len(res.Body), maxReason)])), '}')
	default:
		dst = appendWithoutCauses(dst, failure)
	}
	return append(dst, '}', '}'), true
}

// appendPlace appends the name of the action, and the members that name the item's document: as the engine named them, else as the client
// did.
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
	// Ingest is how long ingest pipelines took; negative where there were none.
	Ingest int64
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
