package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// The door's own decisions about a request.
var (
	// ErrTooLarge reports a request body over Body's limit, or over Limits.MaxBody. The part that was read is kept: Forward still sends
	// the whole body.
	ErrTooLarge = errors.New("request body too large")
	// ErrLeft reports that the client closed its connection, or its sending side, before it had its answer.
	ErrLeft = errors.New("the client left")
	// ErrStopped reports that the server was closed while the request was under way.
	ErrStopped = errors.New("optimist is shutting down")
	// ErrSecondAnswer reports a second answer to one request. The client gets the first one.
	ErrSecondAnswer = errors.New("the request has an answer already")

	errHeaderTimeout = errors.New("the request's header took too long")
	errBodyTimeout   = errors.New("the request's body made no progress")
	errWriteTimeout  = errors.New("the client takes its answer too slowly")
	errIdle          = errors.New("no request came")
	errInterrupted   = errors.New("the rest of the body is not wanted")
	errCrowded       = errors.New("too many clients are connected")
	errNoAnswer      = errors.New("the request was taken and not answered")
	// errNotJSON reports an answer of the engine that should have been rewritten, and isn't JSON.
	errNotJSON = errors.New("the engine's answer is not a JSON document")
	// errEncoding reports an answer of the engine whose content coding can't be undone.
	errEncoding = errors.New("the engine's answer can't be decoded")
)

// The types of the errors that the door itself answers, as in error.type of the body. There are no others, so that they can be
// labels of metrics. (Interceptors have types of their own.) Users' alerts depend on them.
const (
	TypeInvalid     = "invalid_request"          // the request breaks HTTP's grammar, or could be read in two ways
	TypeHeader      = "request_header_too_large" // over Limits.MaxHeader
	TypeTooLarge    = "request_too_large"        // over the limit of a body that must be looked at
	TypeUnsupported = "not_supported"            // another HTTP version, transfer coding, or CONNECT
	TypeSlow        = "request_timeout"          // the client sends too slowly
	TypeCrowded     = "too_many_connections"     // over Limits.MaxConnections
	TypeHandshake   = "tls_handshake_failed"     // the client and the data port don't agree on TLS, or the client's certificate isn't good
	TypeOverloaded  = "overloaded"               // the requests under way hold as many bytes as they may
	TypeStopped     = "shutting_down"            // optimist was stopped before the engine answered
	TypeUnreachable = "upstream_unreachable"     // a node can't be connected to; nothing was sent
	TypeNoNode      = "no_upstream_available"    // nor can any other one
	TypeBusy        = "upstream_busy"            // all connections to the engine are in use; nothing was sent
	TypeLimited     = "upstream_overloaded"      // the engine has too much to do, and the write's turn didn't come; nothing was sent
	TypeTimeout     = "upstream_timeout"         // connecting, or waiting before that, took too long; nothing was sent
	TypeLost        = "upstream_answer_lost"     // a read was sent, and its answer didn't come, or not whole
	TypeUnknown     = "unknown_outcome"          // the same for a request that changes something: it may have been applied
	TypeAnswer      = "upstream_answer_invalid"  // the engine's answer can't be read
	TypeInternal    = "internal_error"           // a bug in optimist
)

// Types are all of these.
func Types() []string {
	return []string{TypeInvalid, TypeHeader, TypeTooLarge, TypeUnsupported, TypeSlow, TypeCrowded, TypeHandshake, TypeOverloaded, TypeStopped,
		TypeUnreachable, TypeNoNode, TypeBusy, TypeLimited, TypeTimeout, TypeLost, TypeUnknown, TypeAnswer, TypeInternal}
}

// Failure is an error in the form in which a client gets it.
type Failure struct {
	Status int
	Type   string
	Reason string
	Fields []wire.Field // of the answer, for this failure: the engine's challenge of a 401
}

// Error implements error, so that an interceptor can give a Failure of its own to Exchange.Fail.
func (f *Failure) Error() string { return f.Type + ": " + f.Reason }

// Append appends the failure as JSON in the shape of the engine's errors.
func (f *Failure) Append(dst []byte) []byte {
	return (&api.Error{Status: f.Status, Type: f.Type, Reason: f.Reason}).Append(dst)
}

// FailureOf is the one table from errors to what the client gets. read says that the request changes nothing: if its answer is
// lost, no outcome is unknown. It returns nil if the client has left.
func FailureOf(err error, read bool) *Failure {
	var own *Failure
	var up *upstream.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, budget.ErrOverloaded):
		return overloaded(err, read)
	case errors.As(err, &up):
		return upstreamFailure(up, read)
	}
	return clientFailure(err)
}

// overloaded is the failure of a request for which there is no memory. If it was sent already, because its answer has no place, its
// outcome is unknown.
func overloaded(err error, read bool) *Failure {
	var up *upstream.Error
	f := &Failure{Status: http.StatusServiceUnavailable, Type: TypeOverloaded, Reason: err.Error()}
	if errors.As(err, &up) && up.Sent && !read {
		lostFailure(f, read)
	}
	return f
}

// clientFailure is the failure for an error of the client, or of optimist itself.
func clientFailure(err error) *Failure {
	f := &Failure{Reason: err.Error()}
	switch status := wire.StatusOf(err); {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		f.Status, f.Type = status, TypeHeader
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		f.Status, f.Type = status, TypeUnsupported
	case status != 0:
		f.Status, f.Type = status, TypeInvalid
	case errors.Is(err, ErrTooLarge), errors.Is(err, budget.ErrTooMuch):
		f.Status, f.Type = http.StatusRequestEntityTooLarge, TypeTooLarge
	case errors.Is(err, errHeaderTimeout), errors.Is(err, errBodyTimeout):
		f.Status, f.Type = http.StatusRequestTimeout, TypeSlow
	case errors.Is(err, errCrowded):
		f.Status, f.Type = http.StatusServiceUnavailable, TypeCrowded
	case errors.Is(err, ErrStopped):
		f.Status, f.Type = http.StatusServiceUnavailable, TypeStopped
	case errors.Is(err, errNoAnswer):
		f.Status, f.Type = http.StatusInternalServerError, TypeInternal
	case errors.Is(err, errNotJSON), errors.Is(err, errEncoding):
		f.Status, f.Type = http.StatusBadGateway, TypeAnswer
	case errors.Is(err, ErrLeft), errors.Is(err, errWriteTimeout), errors.Is(err, context.Canceled), isConnError(err):
		return nil
	default:
		f.Status, f.Type = http.StatusInternalServerError, TypeInternal
	}
	return f
}

// upstreamFailure is the failure for an exchange with the engine. The error names the node and the reason.
func upstreamFailure(e *upstream.Error, read bool) *Failure {
	f := &Failure{Status: http.StatusBadGateway, Reason: e.Error()}
	switch e.Class {
	case upstream.NotSent:
		f.Type = TypeUnreachable
		notSentFailure(f, e)
	case upstream.Lost, upstream.Broken:
		lostFailure(f, read)
	case upstream.TooLarge:
		f.Type = TypeAnswer
	case upstream.Body:
		return clientFailure(e.Err)
	case upstream.Cancelled:
		return cancelledFailure(f, e, read)
	default:
		f.Type = TypeUnreachable
	}
	return f
}

// cancelledFailure is the failure for an exchange that optimist ended itself. It is nil if the client left. A client whose request ran out
// of time is still there.
func cancelledFailure(f *Failure, e *upstream.Error, read bool) *Failure {
	switch {
	case errors.Is(e.Err, ErrStopped):
		f.Status, f.Type = http.StatusServiceUnavailable, TypeStopped
	case errors.Is(e.Err, context.DeadlineExceeded):
		f.Status, f.Type = http.StatusGatewayTimeout, TypeTimeout
	default:
		return nil
	}
	if e.Sent {
		lostFailure(f, read)
	}
	return f
}

func notSentFailure(f *Failure, e *upstream.Error) {
	var connect *upstream.ConnectError
	switch {
	case errors.Is(e.Err, upstream.ErrBusy):
		f.Status, f.Type = http.StatusServiceUnavailable, TypeBusy
	case errors.Is(e.Err, upstream.ErrLimited):
		f.Status, f.Type = http.StatusTooManyRequests, TypeLimited
	case errors.Is(e.Err, upstream.ErrClosed):
		f.Status, f.Type = http.StatusServiceUnavailable, TypeStopped
	case errors.As(e.Err, &connect) && connect.Reason == upstream.TimedOut:
		f.Status, f.Type = http.StatusGatewayTimeout, TypeTimeout
	}
}

func lostFailure(f *Failure, read bool) {
	if read {
		f.Status, f.Type = http.StatusBadGateway, TypeLost
		return
	}
	f.Status, f.Type = http.StatusGatewayTimeout, TypeUnknown
	f.Reason += "; the request may have been applied or not"
}

// allNodesDown makes f name each node and why it is down, if there are several nodes and all are down. f is the failure of the
// node that was tried last.
func allNodesDown(f *Failure, nodes []upstream.NodeState) {
	if len(nodes) < 2 || f.Type != TypeUnreachable && f.Type != TypeTimeout {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "none of %d nodes can be reached", len(nodes))
	for _, n := range nodes {
		if n.Alive || n.Err == nil {
			return
		}
		fmt.Fprintf(&b, "; %s: %v", n.URL, n.Err)
	}
	f.Status, f.Type, f.Reason = http.StatusServiceUnavailable, TypeNoNode, b.String()
}

// isConnError reports whether err says that the connection to a client broke.
func isConnError(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &op)
}
