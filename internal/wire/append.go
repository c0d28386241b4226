package wire

import (
	"net/http"
	"strconv"
)

// AppendRequest appends the head as a request in HTTP/1.1: method and target as they are, the end-to-end fields in their order
// and spelling, the framing of Body and Length, and the empty line. A Content-Length among the fields keeps its place and
// spelling, and gets the value of Length; it is left out if Body isn't Length. Body must not be UntilClose.
func (h *Head) AppendRequest(dst []byte) []byte {
	dst = append(dst, h.Method...)
	dst = append(dst, ' ')
	dst = append(dst, h.Target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	length := int64(-1)
	if h.Body == Length {
		length = h.Length
	}
	dst, placed := h.appendFields(dst, length)
	return h.appendEnd(dst, placed)
}

// AppendResponse appends the head as an answer in HTTP/1.1, with the fields as in AppendRequest. If Body is None a
// Content-Length is kept as it is, because it belongs to HEAD and 304; of 1xx and 204 only one of 0 is kept. A nil Reason
// stands for the usual phrase.
func (h *Head) AppendResponse(dst []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.Status), 10)
	dst = append(dst, ' ')
	if h.Reason == nil {
		dst = append(dst, http.StatusText(h.Status)...)
	} else {
		dst = append(dst, h.Reason...)
	}
	dst = append(dst, "\r\n"...)
	length := int64(-1)
	switch h.Body {
	case Length:
		length = h.Length
	case None:
		n, ok := decimal(h.Get("Content-Length"))
		if ok && (n == 0 || h.Status >= 200 && h.Status != http.StatusNoContent) {
			length = n
		}
	}
	dst, placed := h.appendFields(dst, length)
	return h.appendEnd(dst, placed)
}

// appendFields writes the end-to-end fields. length is the value of a Content-Length; if it is negative the field is left out.
// placed reports whether the field was written.
func (h *Head) appendFields(dst []byte, length int64) (out []byte, placed bool) {
	for i := range h.Fields {
		f := &h.Fields[i]
		if h.hopByHop(f.Name) {
			continue
		}
		switch {
		case len(f.Name) == 14 && EqualFold(f.Name, "Content-Length"):
			if length < 0 || placed {
				continue
			}
			placed = true
			dst = append(dst, f.Name...)
			dst = append(dst, ": "...)
			dst = strconv.AppendInt(dst, length, 10)
			dst = append(dst, "\r\n"...)
			continue
		case len(f.Name) == 6 && !h.Expect100 && EqualFold(f.Name, "Expect") && EqualFold(f.Value, "100-continue"):
			continue
		}
		dst = AppendField(dst, f.Name, f.Value)
	}
	return dst, placed
}

// appendEnd writes the framing, the connection option and the empty line.
func (h *Head) appendEnd(dst []byte, placed bool) []byte {
	switch {
	case h.Body == Chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case h.Body == Length && !placed:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, h.Length, 10)
		dst = append(dst, "\r\n"...)
	}
	switch {
	case h.Close:
		dst = append(dst, "Connection: close\r\n"...)
	case h.KeepAlive:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// AppendField appends one field line.
func AppendField(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// LastChunk ends a chunked body without trailers.
const LastChunk = "0\r\n\r\n"

// AppendChunk appends data as one chunk. It appends nothing for no data, because an empty chunk would end the body.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}
