package write

import (
	"context"

	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/upstream"
)

// carrier takes a load upstream and brings the engine's answer back, in the form that the answer to a single request has. Whether the
// client leaves meanwhile, and which errors there are: see delivery.Sender.
type carrier interface {
	carry(ctx context.Context, l *load) (*upstream.Response, error)
}

// load is one write to send.
type load struct {
	*change             // whose request it goes as
	body    []byte      // the document, also for an _update; for a delete, the client's own body
	part    intent.Part // for an _update, the part of body that is sent
	remove  bool        // the document shall not be there
	guard   doc.Numbers // the revision whose place it may take; zero for a document that must not be there
}

// single carries each load as a request of its own: the client's, with the body and the guard put in.
type single struct{ delivery.Sender }

func (s single) carry(ctx context.Context, l *load) (*upstream.Response, error) {
	body, create := l.outgoing()
	return s.send(ctx, l.change, l.out.Guarded(body, l.guard, create))
}

// park hands the request to the change's Parker, and reports whether the Parker keeps it.
func (l *load) park() bool {
	body, create := l.outgoing()
	return l.req.Parker.Park(&l.out, body, l.guard, create)
}

// outgoing is the body that is sent. create says that there must be no document.
func (l *load) outgoing() (body []byte, create bool) {
	body, create = l.body, !l.guard.Known() && !l.remove
	switch {
	case l.remove:
		body = l.req.Body
	case l.goesAsPart() && create:
		body, create = l.change.Part.UpdateBody(l.Op, l.req.Body, nil, body), false
	case l.goesAsPart():
		body = l.change.Part.UpdateBody(l.Op, l.req.Body, l.part, nil)
	}
	return body, create
}

// send sends a request of the change, on the change's own way if it has one: a bulk sends rejected items again.
func (s single) send(ctx context.Context, c *change, r *upstream.Request) (*upstream.Response, error) {
	r.Background = c.req.Background
	switch {
	case c.Way != nil:
		return delivery.Sender{Up: c.Way}.SendJoined(ctx, r)
	case c.Rule.PassRejected:
		return s.Send(ctx, r)
	}
	return s.SendPatiently(ctx, c.policy, r)
}
