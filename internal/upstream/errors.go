package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// Class says what a failed exchange means for the request. errors.Is finds it in an *Error.
type Class string

// The classes.
const (
	// NotSent reports that nothing of the request was sent: it may be sent again, to any node.
	NotSent Class = "not sent"
	// Lost reports that something of the request was sent and no complete answer came: it may have been applied.
	Lost Class = "answer lost"
	// Broken reports that the answer's head came, and that its body ended too early or is malformed.
	Broken Class = "answer broken off"
	// TooLarge reports that the answer's body is over Config.MaxAnswer, or that there is no memory for it (then errors.Is finds
	// budget.ErrOverloaded, too). The engine has carried out the request.
	TooLarge Class = "answer too large"
	// Cancelled reports that the context ended the exchange; Error.Sent says whether the request may have been applied.
	Cancelled Class = "cancelled"
	// Body reports that the request's Stream failed. No node has got the whole request.
	Body Class = "request body failed"
)

// Error is the class in words.
func (c Class) Error() string { return string(c) }

var (
	// errLeft is the reason of a Cancelled: its client had left before anything was sent.
	errLeft = fmt.Errorf("the client left: %w", context.Canceled)
	// ErrBusy is the reason of a NotSent: all connections were in use for Config.AcquireTimeout.
	ErrBusy = errors.New("no free connection")
	// ErrLimited is the reason of a NotSent of a write whose turn didn't come, because the engine has too much to do.
	ErrLimited = errors.New("the engine has too much to do, and the write's turn didn't come in time")
	// ErrClosed is the reason of a NotSent after Set.Close, and of an exchange under way that fails after Set.HangUp.
	ErrClosed = errors.New("the connections to the engine are closed")
)

// Error reports a failed exchange. errors.Is finds both its class and its reason.
type Error struct {
	// Node is the URL of the node, or "" if none was tried.
	Node  string
	Class Class
	// Sent says that at least one byte of the request was written.
	Sent bool
	// Err is the reason.
	Err error
}

func (e *Error) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("upstream: %v: %v", e.Class, e.Err)
	}
	return fmt.Sprintf("upstream %s: %v: %v", e.Node, e.Class, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's class.
func (e *Error) Is(target error) bool { return target == e.Class }

// ConnectReason says why a connection couldn't be made. There are few, so that they can be labels of metrics.
type ConnectReason string

// The reasons.
const (
	Refused    ConnectReason = "refused"
	TimedOut   ConnectReason = "timeout"
	Unresolved ConnectReason = "dns"
	Handshake  ConnectReason = "tls"
	Other      ConnectReason = "other"
)

// ConnectError is the reason of a NotSent if no connection could be made.
type ConnectError struct {
	Reason ConnectReason
	Err    error
}

func (e *ConnectError) Error() string {
	switch e.Reason {
	case Refused:
		return fmt.Sprintf("connection refused (%v)", e.Err)
	case TimedOut:
		return fmt.Sprintf("connecting timed out (%v)", e.Err)
	case Unresolved:
		return fmt.Sprintf("host name not resolved (%v)", e.Err)
	case Handshake:
		return fmt.Sprintf("TLS handshake failed (%v)%s", e.Err,
			HandshakeAdvice(e.Err, "upstream.tls.ca_file (doctor: --ca-file)", "the URL, or as upstream.tls.server_name"))
	}
	return fmt.Sprintf("connecting failed (%v)", e.Err)
}

// HandshakeAdvice is what to do about the error of a client's TLS handshake, as a clause behind it; "" if nobody knows. authorities is the
// setting that names the file with the authorities, address where the server's name is written.
func HandshakeAdvice(err error, authorities, address string) string {
	switch {
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		return ": the port speaks no TLS, as it seems (http://, and not https://)"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return ": name the file with the certificate's authority in " + authorities
	case errors.As(err, new(x509.HostnameError)):
		return ": write a name that the certificate has in " + address
	}
	return ""
}

// PlainAdvice is what to do about the error of a request without TLS that was sent and got no answer of HTTP, as a clause behind it; "" if
// the error is another.
func PlainAdvice(err error) string {
	switch {
	case errors.As(err, new(*ConnectError)), errors.Is(err, context.DeadlineExceeded):
		return ""
	case errors.As(err, new(*net.OpError)) && !errors.Is(err, syscall.ECONNRESET):
		return ""
	}
	return ": perhaps the port speaks TLS (https://, and not http://)"
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }
