package wire

import (
	"bytes"
	"math"
)

// framingFields are the fields of a head that decide its framing, and whether its connection stays.
type framingFields struct {
	hosts, lengths, codings int
	options                 int
	host, length, coding    []byte
	close, keep             bool
}

// scanFields looks at each field once.
func (h *Head) scanFields() framingFields {
	var f framingFields
	for i := range h.Fields {
		name, v := h.Fields[i].Name, h.Fields[i].Value
		switch len(name) {
		case 4:
			if EqualFold(name, "Host") {
				f.hosts++
				f.host = v
			}
		case 6:
			if EqualFold(name, "Expect") && EqualFold(v, "100-continue") {
				h.Expect100 = true
			}
		case 10:
			if EqualFold(name, "Connection") {
				h.options(v, &f)
			}
		case 14:
			if EqualFold(name, "Content-Length") {
				f.lengths++
				f.length = v
			}
		case 17:
			if EqualFold(name, "Transfer-Encoding") {
				f.codings++
				f.coding = v
			}
		}
	}
	return f
}

// options reads the connection options of one Connection field, up to one more than there may be.
func (h *Head) options(v []byte, f *framingFields) {
	for len(v) > 0 && f.options <= MaxOptions {
		var option []byte
		option, v = cutComma(v)
		f.options++
		switch {
		case len(option) == 0:
		case EqualFold(option, "close"):
			f.close = true
		case EqualFold(option, "keep-alive"):
			f.keep = true
		default:
			h.namesFields = true
		}
	}
}

func (h *Head) finishRequest(authority []byte) error {
	f := h.scanFields()
	if f.hosts > 1 || f.hosts == 0 && h.Minor == 1 || bytes.ContainsAny(f.host, ", \t/@") {
		return ErrHost
	}
	if authority != nil && f.hosts == 1 && !bytes.EqualFold(authority, f.host) {
		return ErrHost
	}
	if err := h.frame(&f); err != nil {
		return err
	}
	if h.Minor == 0 {
		h.Expect100 = false // an HTTP/1.0 client can't have meant it, and couldn't read a 100 (RFC 9110 §10.1.1)
	}
	if !h.HasBody() {
		h.Expect100 = false
	}
	return nil
}

func (h *Head) finishResponse(head bool) error {
	f := h.scanFields()
	if h.Status == 101 {
		return ErrSwitched
	}
	if err := h.frame(&f); err != nil {
		return err
	}
	switch {
	case head, h.Status < 200, h.Status == 204, h.Status == 304:
		h.Body, h.Length = None, -1
	case h.Body == None:
		h.Body, h.Close = UntilClose, true
	}
	return nil
}

// frame decides Body, Length, Close and KeepAlive from the fields, in the same way for requests and answers. An ambiguous
// answer is an error, too, because the next answer on that connection may be for another client.
func (h *Head) frame(f *framingFields) error {
	if f.options > MaxOptions {
		return ErrHeadTooLarge
	}
	h.Body, h.Length = None, -1
	h.Close = f.close || h.Minor == 0 && !f.keep
	h.KeepAlive = h.Minor == 0 && f.keep && !f.close
	if f.codings > 0 {
		switch {
		case f.lengths > 0:
			return ErrBothFramings
		case h.Minor == 0 || f.codings > 1:
			return ErrTransferEncoding
		case !EqualFold(f.coding, "chunked"):
			return codingError(f.coding)
		}
		h.Body = Chunked
		return nil
	}
	if f.lengths == 0 {
		return nil
	}
	if f.lengths > 1 {
		return ErrContentLength
	}
	n, ok := decimal(f.length)
	if !ok {
		return ErrContentLength
	}
	h.Body, h.Length = Length, n
	return nil
}

// codingError distinguishes a coding that isn't supported from a list that is no valid framing.
func codingError(v []byte) error {
	unknown := false
	for {
		var c []byte
		c, v = cutComma(v)
		switch {
		case len(c) == 0 || !token(c) || EqualFold(c, "identity"):
			return ErrTransferEncoding
		case EqualFold(c, "chunked"):
			if len(v) > 0 || !unknown {
				return ErrTransferEncoding // chunked must be last, and once
			}
		default:
			unknown = true
		}
		if len(v) == 0 {
			return ErrTransferCoding
		}
	}
}

// decimal parses 1*DIGIT.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := int64(c - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// cutComma returns the first element of a comma-separated list, trimmed, and the rest.
func cutComma(v []byte) (first, rest []byte) {
	i := bytes.IndexByte(v, ',')
	if i < 0 {
		return trim(v), nil
	}
	return trim(v[:i]), v[i+1:]
}
