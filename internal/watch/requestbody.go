package watch

import (
	"bytes"
	"errors"

	"optimist/internal/budget"
	"optimist/internal/client"
	"optimist/internal/coding"
	"optimist/internal/jsontext"
)

// requestBody is the body of a read of many documents. It is neither expanded nor read before the engine has answered: until then anybody
// may have sent it.
type requestBody struct {
	body []byte
	gzip bool
	room *budget.Account
	// readable says that the request can be understood: it is JSON, as far as that is known before the answer, not too large, and there
	// is memory for it. Otherwise the answer can't be understood, either.
	readable bool
}

// maxPeek is up to how many bytes of a compressed question are expanded before its answer, to see whether it asks for parts.
const maxPeek = 64 << 10

func requestBodyOf(r *client.Request, limit int64) (q requestBody) {
	var err error
	q.room = budget.Of(r.Context())
	if q.body, err = r.Body(limit); err != nil || q.room.Take(int64(len(q.body))) != nil { // what reads JSON makes a copy
		return q
	}
	switch q.gzip = r.Gzipped(); {
	case q.gzip:
		_, err = coding.Gunzip(q.body, 0) // its head
		q.readable = !errors.Is(err, coding.ErrMalformed)
	case r.Head().Get("content-encoding") == nil:
		q.readable = blankOrJSON(q.body)
	}
	return q
}

func blankOrJSON(body []byte) bool { return len(bytes.TrimSpace(body)) == 0 || jsontext.Valid(body) }

// early is the question as far as it may be looked at before the answer. known is false where it is unreadable, or too large for
// that.
func (q *requestBody) early() (body []byte, known bool) {
	if !q.gzip || !q.readable {
		return q.body, q.readable
	}
	body, err := coding.Gunzip(q.body, maxPeek)
	return body, err == nil
}

// text is the question, for when it is answered; there may be none. ok is false where it can't be read.
func (q *requestBody) text(limit int64) (body []byte, ok bool) {
	if !q.gzip || !q.readable {
		return q.body, q.readable
	}
	body, err := coding.GunzipIn(q.room, q.body, limit)
	if err == nil {
		err = q.room.Take(int64(len(body)))
	}
	return body, err == nil && blankOrJSON(body)
}
