package wire

// MaxFields bounds the number of fields of a head. Each field costs work in every comparison, however short it is.
const MaxFields = 512

// MaxOptions bounds the number of elements of all Connection fields of a head: each is compared with each field. Senders name a handful.
const MaxOptions = 64

// DefaultMaxHead is the default limit of a head in bytes. The engines take 8 to 16 KiB; cookies and tokens of gateways in front
// of us can be larger.
const DefaultMaxHead = 64 << 10

// Field is one header field as it stood on the wire. The value has no white space around it.
type Field struct{ Name, Value []byte }

// Framing says how the end of a body is found.
type Framing uint8

// The framings.
const (
	// None is a message without a body.
	None Framing = iota
	// Length is a body of Head.Length bytes, which may be 0.
	Length
	// Chunked is a body in the chunked transfer coding.
	Chunked
	// UntilClose is the body of an answer that ends with the connection.
	UntilClose
)

// Head is the head of one request or answer. ReadRequest and ReadResponse read it, AppendRequest and AppendResponse write it. A
// Head that is used again allocates only for a message that is larger than all before. All slices point into the Head's own
// buffer and are valid until it is read again. It is not safe for concurrent use.
type Head struct {
	// Method and Target are those of a request. Target has the request's own bytes. If the target is in absolute form, it is the part
	// after the authority. It may be "*".
	Method, Target []byte
	// Minor is the minor version, 0 or 1 (a higher one counts as 1).
	Minor int
	// Status is the answer's status, 0 in a request. Reason is its phrase, which may be empty.
	Status int
	Reason []byte
	// Fields are all fields in their order. They include hop-by-hop fields, which EndToEnd leaves out.
	Fields []Field
	// Body is the framing. Length is the number of bytes if Body is Length, else -1.
	Body   Framing
	Length int64
	// Close says that the sender ends the connection after this message. A head with it is written with "Connection: close".
	Close bool
	// KeepAlive says that an HTTP/1.0 sender wants the connection to stay. A head with it is written with "Connection:
	// keep-alive".
	KeepAlive bool
	// Expect100 says that the client waits for "100 Continue" before it sends the body. A request without it is written without
	// an Expect field of that value.
	Expect100 bool

	// Identity are the fields that identify the client. Connection can't name them. It stays when the Head is read again. Nil:
	// DefaultIdentity.
	Identity *Names

	buf         []byte
	namesFields bool // Connection names fields: options besides close and keep-alive
}

// Get returns the value of the first field of that name, or nil if there is none. Names are compared without case. The value of
// an empty field is an empty slice that isn't nil.
func (h *Head) Get(name string) []byte {
	for i := range h.Fields {
		if EqualFold(h.Fields[i].Name, name) {
			return h.Fields[i].Value
		}
	}
	return nil
}

// HasBody reports whether the message has, or may have, bytes of a body.
func (h *Head) HasBody() bool {
	return h.Body == Chunked || h.Body == UntilClose || h.Body == Length && h.Length > 0
}

// sizeOfField is how many bytes a Field takes beside its text.
const sizeOfField = 48

// Size is how many bytes the Head holds: its text, and the list of its fields.
func (h *Head) Size() int { return len(h.buf) + sizeOfField*len(h.Fields) }

// Reset empties the Head. It keeps the buffers for the next message, unless they are unusually large.
func (h *Head) Reset() {
	buf, fields := h.buf, h.Fields
	if cap(buf) > 16<<10 {
		buf = nil
	}
	if cap(fields) > 128 {
		fields = nil
	}
	*h = Head{buf: buf[:0], Fields: fields[:0], Length: -1, Identity: h.Identity}
}

// EqualFold compares a name from the wire with one of ours, ASCII letters without case. It is for names of fields,
// options and codings, which are ASCII; other bytes must be equal.
func EqualFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		if lower(b[i]) != lower(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// IsSafe reports whether requests with the method change nothing (RFC 9110 §9.2.1).
func IsSafe(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS":
		return true
	}
	return false
}

// MethodString returns method as a string, without allocating for those that the engines know.
func MethodString(method []byte) string {
	for _, m := range [...]string{"GET", "PUT", "POST", "HEAD", "DELETE", "PATCH", "OPTIONS"} {
		if string(method) == m {
			return m
		}
	}
	return string(method)
}
