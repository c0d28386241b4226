package intercept

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"optimist/internal/bulk"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/wire"
	"optimist/proxy"
)

// denial is the answer to a bulk's items after the engine has refused the client's credentials for one of them. The engine isn't asked
// for the others: a small compressed bulk may have a hundred thousand items. All goroutines of the bulk may use it.
type denial struct {
	of    atomic.Pointer[error]
	index atomic.Pointer[catalog.Index] // the first one about which the engine has refused to say anything to the client
}

// err is what the next item gets; nil if the engine has refused no credentials.
func (d *denial) err() error {
	if err := d.of.Load(); err != nil {
		return *err
	}
	return nil
}

// note keeps what an item gets, if err says that the engine has refused the credentials (401). A 403 says nothing about the other items.
func (d *denial) note(err, gets error) {
	if es.IsStranger(err) {
		d.of.CompareAndSwap(nil, &gets)
	}
}

// deniedWhole is why nothing of the bulk was done, where the engine has refused the client's credentials for each of its items; else nil.
// The client gets one answer, as from the engine. account counts the items then.
func (b *items) deniedWhole(account *outcome.Items) error {
	denied := b.denied.err()
	if denied == nil {
		return nil
	}
	if !b.every(func(it *item) bool {
		f, ok := errors.AsType[*proxy.Failure](it.err)
		return ok && f.Status == http.StatusUnauthorized
	}) {
		return nil
	}
	for k := range b.all {
		account.Add(&b.all[k].account)
	}
	return denied
}

// answer gives the client what became of all items.
func (b *items) answer(began time.Time) {
	r := b.r
	if err := context.Cause(r.Context()); err != nil && b.noneSent() {
		r.Fail(err)
		return
	}
	var account outcome.Items
	if err := b.deniedWhole(&account); err != nil {
		b.noteAnswers()
		r.Fail(err, outcomeField(&account))
		return
	}
	s := b.group.Summary()
	s.Took = time.Since(began)
	room := roomOfSummary
	for k := range b.all {
		room += len(b.all[k].res.Body) + roomOfElement
	}
	out := make([]byte, roomOfSummary, room)
	for k := range b.all {
		if k > 0 {
			out = append(out, ',')
		}
		out = b.appendItem(out, k, &account, &s)
	}
	head := s.Append(nil) // which says whether any item failed
	body := append(out[roomOfSummary-len(head):], "]}"...)
	copy(body, head)
	body = respond.Filtered(r.Op().Query, body)
	whole := b.refusal()
	b.noteAnswers()
	field := outcomeField(&account)
	if whole != nil {
		_ = r.Answer(whole.Status, append(whole.Fields, field), whole.Body)
		return
	}
	if head := b.group.Head(); head != nil {
		_ = r.Answer(http.StatusOK, append(head, field), body)
		return
	}
	_ = r.AnswerOwn(http.StatusOK, []wire.Field{respond.JSON, field}, body)
}

// roomOfSummary is more bytes than a bulk.Summary takes, and roomOfElement what an element of the answer takes beyond the body of a single
// write's answer.
const (
	roomOfSummary = 128
	roomOfElement = 32
)

// appendItem appends the element of an item's result, and counts it.
func (b *items) appendItem(dst []byte, k int, account *outcome.Items, s *bulk.Summary) []byte {
	it := &b.all[k]
	account.Add(&it.account)
	dst, failed := it.AppendItem(dst, it.result())
	s.Failed = s.Failed || failed
	return dst
}

// noteAnswers ends what the session holds for the items until they have their answer. It comes before that: a client that has its answer
// may close the connection at once.
func (b *items) noteAnswers() {
	for k := range b.all {
		b.all[k].wrote.NoteAnswer()
	}
	for _, some := range b.works {
		b.i.works.Put(some)
	}
	b.works = nil
}

// refusal is the engine's answer where that refuses the whole bulk, and nothing of it was done.
func (b *items) refusal() *bulk.Refusal {
	whole := b.group.Refusal()
	if whole == nil || !b.every(func(it *item) bool {
		return it.err == nil && it.res.Status == whole.Status && bytes.Equal(it.res.Body, whole.Body)
	}) {
		return nil
	}
	return whole
}

// every reports whether something is so for every item.
func (b *items) every(is func(*item) bool) bool {
	for k := range b.all {
		if !is(&b.all[k]) {
			return false
		}
	}
	return true
}

// result is what became of the item, as an answer to it alone would say it.
func (it *item) result() bulk.Result {
	if it.err == nil {
		return it.res
	}
	f := proxy.FailureOf(it.err, false)
	switch {
	case f != nil:
	case errors.Is(it.err, context.Canceled), errors.Is(it.err, proxy.ErrLeft):
		f = clientLeft
	default:
		f = &proxy.Failure{Status: http.StatusInternalServerError, Type: proxy.TypeInternal, Reason: it.err.Error()}
	}
	return bulk.Result{Status: f.Status, Body: f.Append(nil)}
}

// clientLeft is what an item gets that wasn't sent, because the client had left by then. A client that has only ended its sending side
// looks the same, and still reads the answer.
var clientLeft = &proxy.Failure{Status: http.StatusServiceUnavailable, Type: "client_left",
	Reason: "the client closed its connection, or its sending side, before the item was sent: nothing of it was written"}

// noneSent reports whether the engine has certainly done nothing for any item.
func (b *items) noneSent() bool {
	return b.every(func(it *item) bool { return it.err != nil && it.account.Kind != outcome.Unknown })
}
