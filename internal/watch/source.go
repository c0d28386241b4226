package watch

import (
	"bytes"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/uri"
	"optimist/proxy"
)

// watchSource forwards the read of a bare _source as it is, so that not a byte of its answer is another, and asks for the document with its
// numbers before: at the same time, each of the two would hold a connection that the other may wait for. If both answers have the same
// bytes, the session remembers the document. It reports false, and has forwarded nothing, where there is nothing to compare.
func (rd *Reading) watchSource() bool {
	op, d := rd.r.Op(), &rd.document
	target := documentOfSource(op)
	if _, pretty := uri.Param(op.Query, "pretty"); target == nil || pretty {
		return false
	}
	rd.begin(true)
	if !rd.remembers(rd.choice.rule) {
		return false
	}
	res, err := rd.ask(http.MethodGet, target, op.Query, nil)
	if err != nil {
		return false
	}
	defer res.Release()
	d.readOne(res.Status, res.Payload)
	if !d.whole || !d.Numbered {
		return false
	}
	rd.decide(d.Index)
	d.watches = rd.choice.rule
	ref, stored := d.Ref, bare(res.Payload, d.from, d.from+len(d.Source))
	rd.copy.Whole = func() {
		if body, ok := rd.copy.Body(); ok && rd.copy.Status == http.StatusOK && bytes.Equal(body, stored) {
			rd.remember(d)
		} else if rd.copy.Status == http.StatusOK {
			rd.w.Sessions.ReadUnknown(rd.client.Session, ref)
		}
	}
	h := rd.makeHooks()
	rd.r.Pass(proxy.ForwardOptions{OnHead: h.head, Copy: h.copy, Last: h.last})
	return true
}

// documentOfSource is the path of the document whose bare _source is asked for; nil if it can't be told.
func documentOfSource(op *api.Op) []byte {
	i := bytes.LastIndex(op.Path, []byte("/_source"))
	if i < 0 {
		return nil
	}
	path, rest := append([]byte(nil), op.Path[:i]...), op.Path[i+len("/_source"):]
	if !op.Typed {
		path = append(path, "/_doc"...)
	}
	return append(path, rest...)
}

// shaped is the answer with its stamp in the form that was asked for.
func (rd *Reading) shaped(answer []byte) []byte {
	op, d := rd.r.Op(), &rd.document
	body := rd.stamps.into(answer)
	if op.Kind != api.Source {
		return body
	}
	end := d.from + len(d.Source) + len(body) - len(answer)
	if v, pretty := uri.Param(op.Query, "pretty"); pretty && (len(v) == 0 || string(v) == "true") {
		return unindented(body[d.from:end])
	}
	return bare(body, d.from, end)
}

// bare is what a read of the bare _source answers: the document, which stands between from and to, with the white space around it that it
// was stored with. That is all between the key's colon and the end of the answer to a get, whose last member it is.
func bare(answer []byte, from, to int) []byte {
	source := answer[from:to]
	for from > 0 && jsontext.IsSpace(answer[from-1]) {
		from--
	}
	for to < len(answer) && jsontext.IsSpace(answer[to]) {
		to++
	}
	if from == 0 || answer[from-1] != ':' || to >= len(answer) || answer[to] != '}' {
		return source
	}
	return answer[from:to]
}

// unindented is a document that stands in a pretty answer as it would stand by itself: each of its lines two spaces further out.
// No string has an end of a line in it.
func unindented(source []byte) []byte {
	return append(bytes.ReplaceAll(source, []byte("\n  "), []byte("\n")), '\n')
}
