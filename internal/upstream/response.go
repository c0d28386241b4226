package upstream

import (
	"context"
	"fmt"

	"optimist/internal/budget"
	"optimist/internal/wire"
)

// Response is a whole answer. Its Head is as the node sent it. It includes hop-by-hop fields, which EndToEnd leaves out; its
// framing and its Close are about the connection to the node.
type Response struct {
	wire.Head
	// Payload is the body without its transfer coding and with its content coding.
	Payload []byte
	// Node is the URL of the node that answered.
	Node string
	// OfAll says that the answer isn't to the request alone: it went with others, and the engine refused all of them at once. Perhaps the
	// engine has looked at none of them.
	OfAll bool

	set *Set
}

// Release lets later Responses use this one's memory. Neither it nor any slice of it may be used afterwards.
func (r *Response) Release() {
	if r == nil || r.set == nil {
		return
	}
	s := r.set
	r.set, r.Node, r.OfAll = nil, "", false
	r.Head.Reset()
	if cap(r.Payload) > maxKept {
		r.Payload = nil
	}
	r.Payload = r.Payload[:0]
	s.responses.Put(r)
}

func (s *Set) response() *Response {
	r, _ := s.responses.Get().(*Response)
	if r == nil {
		r = &Response{}
	}
	r.set = s
	return r
}

// Do is Set.Do on this Exchange, with the Exchange's context.
func (x *Exchange) Do(r *Request) (*Response, error) {
	again := r.Repeatable
	for {
		if err := x.send(r, &again); err != nil {
			return nil, err
		}
		resp, err := x.collect()
		if err == nil {
			return resp, nil
		}
		if err.Class != Lost || !again || r.Stream != nil {
			return nil, err
		}
		again = false
	}
}

// unwanted ends the exchange before the end of its answer.
func (x *Exchange) unwanted(resp *Response, why error) *Error {
	e := x.failure(x.conn, TooLarge, why)
	x.release(false)
	resp.Release()
	return e
}

// collect reads the whole answer, into memory of the context's budget.
func (x *Exchange) collect() (*Response, *Error) {
	resp := x.set.response()
	limit, room := x.set.cfg.MaxAnswer, budget.Of(x.ctx)
	for tooLarge := x.head.Length > limit; ; {
		if tooLarge {
			return nil, x.unwanted(resp, fmt.Errorf("more than %d bytes", limit))
		}
		p, end, e := x.next()
		if end {
			break
		}
		if e != nil {
			resp.Release()
			if e.Class == Broken {
				e.Class = Lost // the caller wants the whole answer, and there is none
			}
			return nil, e
		}
		size := len(resp.Payload) + len(p)
		if tooLarge = int64(size) > limit; tooLarge {
			continue
		}
		if size > budget.Free { // a short answer is always taken: it may say what became of a write
			if err := room.Take(wire.Growth(resp.Payload, len(p), x.head.Length)); err != nil {
				return nil, x.unwanted(resp, err)
			}
		}
		resp.Payload = wire.Gather(resp.Payload, p, x.head.Length)
	}
	resp.Node = x.Node()
	x.Finish()
	resp.Head, x.head = x.head, resp.Head // swapped, because their buffers belong to them
	return resp, nil
}

// Do sends r and collects the answer's body without its transfer coding. If nothing was sent it tries another node. If the
// answer was lost and r is Repeatable it sends r once more. Any other failure is returned at once, as an *Error. When ctx ends
// the connection is closed, so that the engine can stop working. Release the Response after use.
func (s *Set) Do(ctx context.Context, r *Request) (*Response, error) {
	x, _ := s.exchanges.Get().(*Exchange)
	if x == nil {
		x = newExchange(s)
	}
	x.bind(ctx)
	x.limit(r.Timeout)
	resp, err := x.Do(r)
	stopped := x.unlimit(r.Timeout)
	if x.unbind() && stopped { // unbind in any case: a context that lives on would keep the Exchange
		s.exchanges.Put(x)
	}
	return resp, err
}
