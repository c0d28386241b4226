package wire

import (
	"bytes"
	"io"
)

// maxEmptyLines is how many empty lines are skipped before a request line. Old clients send one after a body.
const maxEmptyLines = 4

// ReadRequest reads one request head of at most limit bytes (0: DefaultMaxHead) and decides its framing. It returns io.EOF
// if the client ended before the first byte, io.ErrUnexpectedEOF if it ended in the middle, the connection's own error, or
// one of this package's.
func (h *Head) ReadRequest(r *Reader, limit int) error {
	h.Reset()
	for n := 0; ; n++ {
		for r.Buffered() < 2 && (r.Buffered() == 0 || r.Peek()[0] == '\r') {
			if err := r.Fill(); err != nil {
				return unexpectedEOF(err, r.Buffered() > 0)
			}
		}
		b := r.Peek()
		if b[0] == '\n' {
			return ErrBareLF
		}
		if b[0] != '\r' {
			if !isToken[b[0]] {
				return ErrRequestLine // without waiting for the line's end: that of a TLS hello may never come
			}
			break
		}
		if b[1] != '\n' || n == maxEmptyLines {
			return ErrRequestLine
		}
		r.Discard(2)
	}
	if err := h.readHead(r, limit, h.requestVersion); err != nil {
		return err
	}
	return h.parseRequest()
}

// ReadResponse reads one answer's head of at most limit bytes (0: DefaultMaxHead) to a request of that method. Interim
// answers (1xx) are returned like others. Errors are as in ReadRequest.
func (h *Head) ReadResponse(r *Reader, method string, limit int) error {
	h.Reset()
	if r.Buffered() == 0 {
		if err := r.Fill(); err != nil {
			return err
		}
	}
	if r.Peek()[0] != 'H' {
		return ErrStatusLine
	}
	if err := h.readHead(r, limit, nil); err != nil {
		return err
	}
	return h.parseResponse(method == "HEAD")
}

// readHead moves one head from r to the Head's buffer, up to and including its empty line. check, unless it is nil, looks at the first line
// before the others are waited for.
func (h *Head) readHead(r *Reader, limit int, check func(line []byte) error) error {
	if limit <= 0 {
		limit = DefaultMaxHead
	}
	for line := 0; ; { // where the current line begins
		end, err := endOfLine(r, line, limit)
		if err != nil {
			return err
		}
		b := r.Peek()
		switch {
		case end == line || b[end-1] != '\r':
			return ErrBareLF
		case end+1 > limit:
			return ErrHeadTooLarge
		case end == line+1:
			h.buf = append(h.buf[:0], b[:end+1]...)
			r.Discard(end + 1)
			return nil
		case line == 0 && check != nil:
			if err := check(b[:end-1]); err != nil {
				return err
			}
		}
		line = end + 1
	}
}

// endOfLine reads until r holds the end of the line that begins at line, and returns the place of its LF.
func endOfLine(r *Reader, line, limit int) (int, error) {
	for seen := line; ; { // up to where the end was looked for
		b := r.Peek()
		if i := bytes.IndexByte(b[seen:], '\n'); i >= 0 {
			return seen + i, nil
		}
		if seen = len(b); seen >= limit {
			return 0, ErrHeadTooLarge
		}
		if err := r.fill(2 * limit); err != nil {
			return 0, unexpectedEOF(err, true)
		}
	}
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF if the stream ended in the middle of something.
func unexpectedEOF(err error, middle bool) error {
	if err == io.EOF && middle {
		return io.ErrUnexpectedEOF
	}
	return err
}

// requestVersion reads the version at the end of a request line. A client that names none speaks HTTP/0.9: it sends no other line, and
// waits for its answer.
func (h *Head) requestVersion(line []byte) error {
	if v := line[bytes.LastIndexByte(line, ' ')+1:]; !h.version(v) {
		return versionError(v, ErrRequestLine)
	}
	return nil
}

// parseRequest parses the head but for its version, which requestVersion has read.
func (h *Head) parseRequest() error {
	line, rest := cutLine(h.buf)
	sp := bytes.IndexByte(line, ' ')
	if sp <= 0 || !token(line[:sp]) {
		return ErrRequestLine
	}
	h.Method, line = line[:sp], line[sp+1:]
	if sp = bytes.LastIndexByte(line, ' '); sp < 0 {
		return ErrRequestLine
	}
	target := line[:sp] // what follows is the version
	if string(h.Method) == "CONNECT" {
		return ErrConnect
	}
	authority, err := h.target(target)
	if err != nil {
		return err
	}
	if err := h.fields(rest, false); err != nil {
		return err
	}
	return h.finishRequest(authority)
}

// target takes the origin form, the absolute form and, for OPTIONS, the asterisk. It returns the authority of an
// absolute form.
func (h *Head) target(t []byte) (authority []byte, err error) {
	if len(t) == 0 || !visible(t) {
		return nil, ErrTarget
	}
	if t[0] == '/' {
		h.Target = t
		return nil, nil
	}
	if string(t) == "*" && string(h.Method) == "OPTIONS" {
		h.Target = t
		return nil, nil
	}
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(t) <= len(scheme) || !EqualFold(t[:len(scheme)], scheme) {
			continue
		}
		t = t[len(scheme):]
		slash := bytes.IndexByte(t, '/')
		if slash <= 0 || bytes.ContainsAny(t[:slash], "?#@") {
			return nil, ErrTarget // an empty path, or credentials, which no honest client sends to a gateway
		}
		h.Target = t[slash:]
		return t[:slash], nil
	}
	return nil, ErrTarget
}

func (h *Head) parseResponse(head bool) error {
	line, rest := cutLine(h.buf)
	if len(line) < len("HTTP/1.1 200") || line[8] != ' ' || !h.version(line[:8]) {
		return ErrStatusLine
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return ErrStatusLine
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	if h.Status < 100 {
		return ErrStatusLine
	}
	if len(line) > 12 {
		if line[12] != ' ' || !value(line[13:]) {
			return ErrStatusLine
		}
		h.Reason = line[13:]
	}
	if err := h.fields(rest, true); err != nil {
		return err
	}
	return h.finishResponse(head)
}

// version reads HTTP/1.x. A minor version above 1 counts as 1 (RFC 9110 §2.5).
func (h *Head) version(v []byte) bool {
	if len(v) != 8 || string(v[:7]) != "HTTP/1." || v[7] < '0' || v[7] > '9' {
		return false
	}
	h.Minor = min(int(v[7]-'0'), 1)
	return true
}

// versionError is ErrVersion for a version of HTTP other than 1.x, and other for anything else.
func versionError(v []byte, other error) error {
	if len(v) == 8 && string(v[:5]) == "HTTP/" && v[6] == '.' && v[5] >= '0' && v[5] <= '9' && v[7] >= '0' && v[7] <= '9' {
		return ErrVersion
	}
	return other
}

// fields parses the field lines. A line that is folded, or has white space before its colon, is refused in a request. In an
// answer it is repaired, as RFC 9112 §5 wants proxies to do.
func (h *Head) fields(rest []byte, answer bool) error {
	for {
		if rest[0] == '\r' {
			return endOfFields(rest)
		}
		if rest[0] == ' ' || rest[0] == '\t' {
			var err error
			if rest, err = h.unfold(rest, answer); err != nil {
				return err
			}
			continue
		}
		name, at := fieldName(rest, answer)
		if len(name) == 0 || rest[at] != ':' {
			return ErrFieldName
		}
		rest = rest[at+1:]
		end := valueLen(rest)
		if rest[end] != '\r' || rest[end+1] != '\n' {
			return ErrFieldValue
		}
		if len(h.Fields) == MaxFields {
			return ErrHeadTooLarge
		}
		h.Fields = append(h.Fields, Field{Name: name, Value: trim(rest[:end])})
		rest = rest[end+2:]
	}
}

// fieldName returns the name at the beginning of a line, and where its colon should be: in an answer behind white space.
func fieldName(line []byte, answer bool) (name []byte, colon int) {
	n := tokenLen(line)
	name = line[:n]
	for answer && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return name, n
}

// endOfFields makes sure that rest, which begins with CR, is the empty line. readHead has found that line, and no LF without CR.
func endOfFields(rest []byte) error {
	if len(rest) != 2 {
		return ErrFieldName
	}
	return nil
}

// unfold joins the folded line at the beginning of rest to the value before it, and returns what follows the line. Both lie in
// the Head's buffer. The line ending and the white space between them become spaces.
func (h *Head) unfold(rest []byte, answer bool) ([]byte, error) {
	if !answer || len(h.Fields) == 0 {
		return nil, ErrFold
	}
	end := valueLen(rest)
	if rest[end] != '\r' || rest[end+1] != '\n' {
		return nil, ErrFieldValue
	}
	// All three slices end where buf's capacity ends. So their capacities tell where they begin in buf.
	last := &h.Fields[len(h.Fields)-1].Value
	start, begin := cap(h.buf)-cap(*last), cap(h.buf)-cap(rest)
	for i := start + len(*last); i < begin; i++ {
		h.buf[i] = ' '
	}
	*last = trim(h.buf[start : begin+end])
	return rest[end+2:], nil
}

// cutLine returns the bytes before the next CRLF and those after it. readHead has made sure that there is one.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return nil, nil
	}
	return b[:i-1], b[i+1:]
}

// trim removes spaces and tabs at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
