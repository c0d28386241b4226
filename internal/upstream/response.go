package upstream

import "optimist/internal/wire"

// Response is a whole answer. Its Head is as the node sent it: hop-by-hop fields included (EndToEnd leaves them out), with
// the framing and the Close of a connection that isn't the reader's.
type Response struct {
	wire.Head
	// Payload is the body without its transfer coding; a content coding is untouched.
	Payload []byte
	// Node is the URL of the node that answered.
	Node string

	set *Set
}

// maxKept is the size in bytes above which a buffer isn't kept for the next use.
const maxKept = 64 << 10

// Release gives the Response's memory to later ones. Neither it nor any slice of it may be used afterwards.
func (r *Response) Release() {
	if r == nil || r.set == nil {
		return
	}
	s := r.set
	r.set, r.Node = nil, ""
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
