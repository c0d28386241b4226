package ruletest

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/rule"
	"optimist/internal/wire"
)

// headers are those of a write's client, without what belongs to the body.
func (p *play) headers(w *Write) http.Header {
	h := http.Header{}
	gjson.ParseBytes(w.Headers.Text).ForEach(func(k, v gjson.Result) bool {
		h.Set(k.String(), v.String())
		return true
	})
	if w.User.IsSet {
		h.Del("Authorization") // the test's, where the write has a user of its own
	}
	if name := gjson.ParseBytes(w.User.Text).String(); name != "" {
		r := http.Request{Header: h}
		r.SetBasicAuth(name, "")
	}
	return h
}

// name has a client name its session, unless the test gives the header, or is about clients that don't.
func (p *play) name(h http.Header, w *Write, session string) {
	if w.Via != "inferred" && p.w.header != "" && h.Get(p.w.header) == "" {
		h.Set(p.w.header, session)
	}
}

// message makes the request of a write.
func (p *play) message(w *Write, session string, seen *read) *message {
	m := &message{method: w.request.method, target: w.request.target, header: p.headers(w), body: w.Sent.Text}
	if w.Sent.IsSet && m.header.Get("Content-Type") == "" {
		m.header.Set("Content-Type", mediaOf(w.request.op, w.Sent.Text))
	}
	switch w.Via {
	case "if_match":
		session += "-elsewhere" // a session of its own: only the ETag says what it has read
		if seen.etag != "" {
			m.header.Set("If-Match", seen.etag)
		}
	case "stamp":
		session += "-elsewhere"
		m.body = p.stamped(w, seen)
	}
	p.name(m.header, w, session)
	return m
}

// mediaOf is what the body of a write probably is.
func mediaOf(op api.Kind, body []byte) string {
	switch {
	case op != api.Patch:
		return "application/json"
	case jsontext.LooksLikeArray(body):
		return "application/json-patch+json"
	}
	return "application/merge-patch+json"
}

// stamped is what is sent, with the stamp of what was read. The application sends the stamp back in the whole document, or in the part that
// it sends.
func (p *play) stamped(w *Write, seen *read) []byte {
	field := p.stamp(w)
	if field == "" || seen.served == nil {
		return w.Sent.Text
	}
	stamp := member(seen.served, field)
	if stamp.Raw == "" {
		return w.Sent.Text
	}
	if w.request.op != api.Update {
		return with(w.Sent.Text, field, stamp.Raw)
	}
	part := member(w.Sent.Text, "doc")
	if part.Index == 0 {
		return w.Sent.Text
	}
	out := append(bytes.Clone(w.Sent.Text[:part.Index]), with([]byte(part.Raw), field, stamp.Raw)...)
	return append(out, w.Sent.Text[part.Index+len(part.Raw):]...)
}

// with is an object with one more member, unless it has that already; what isn't an object stays as it is.
func with(object []byte, name, value string) []byte {
	if !bytes.HasPrefix(object, []byte("{")) || member(object, name).Raw != "" {
		return object
	}
	key, _ := json.Marshal(name) // a text
	rest := bytes.TrimSpace(object[1:])
	out := append(append([]byte{'{'}, key...), ':')
	out = append(out, value...)
	if len(rest) > 1 {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// member is a top-level member's value, as it stands.
func member(doc []byte, name string) (value gjson.Result) {
	gjson.ParseBytes(doc).ForEach(func(k, v gjson.Result) bool {
		if k.String() == name {
			value = v
		}
		return true
	})
	return value
}

// stamp is the field that the document was served with to the client of a write: which rule stamps is a matter of who reads.
func (p *play) stamp(w *Write) string {
	asked := rule.Target{Index: w.request.index}
	for k, values := range p.headers(w) {
		for _, v := range values {
			asked.Fields = append(asked.Fields, wire.Field{Name: []byte(k), Value: []byte(v)})
		}
	}
	if ru := p.rules.Stamper(&asked); ru != nil {
		return ru.Stamp
	}
	return ""
}
