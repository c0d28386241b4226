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
	change *change     // whose request it goes as
	body   []byte      // the document, also for an _update; for a delete, the client's own body
	part   intent.Part // for an _update, the part of body that is sent
	remove bool        // the document shall not be there
	guard  doc.Numbers // the revision whose place it may take; zero for a document that must not be there
}

// single carries each load as a request of its own: the client's, with the body and the guard put in.
type single struct{ delivery.Sender }

func (s single) carry(ctx context.Context, l *load) (*upstream.Response, error) {
	body, create := l.outgoing()
	return s.send(ctx, l.change, l.change.out.Guarded(body, l.guard, create))
}

// park hands the request to the change's Parker, and reports whether the Parker keeps it.
func (l *load) park() bool {
	body, create := l.outgoing()
	return l.change.req.Parker.Park(&l.change.out, body, l.guard, create)
}

// outgoing is the body that is sent. create says that there must be no document.
func (l *load) outgoing() (body []byte, create bool) {
	c := l.change
	body, create = l.body, !l.guard.Known() && !l.remove
	switch {
	case l.remove:
		body = c.req.Body
	case c.goesAsPart() && create:
		body, create = c.Part.UpdateBody(c.Op, c.req.Body, nil, body), false
	case c.goesAsPart():
		body = c.Part.UpdateBody(c.Op, c.req.Body, l.part, nil)
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
