package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// encode turns a step into the bytes of its request. expand fills in the names.
func (s *Step) encode(host string, expand func(string) string) (method string, head, body []byte, err error) {
	if s.Raw != "" {
		text, err := unescape(expand(s.Raw))
		if err != nil {
			return "", nil, nil, err
		}
		method, _, _ = strings.Cut(text, " ")
		return method, []byte(text), nil, nil
	}
	method, target, ok := strings.Cut(expand(s.Request), " ")
	if !ok {
		return "", nil, nil, fmt.Errorf("request %q", s.Request)
	}
	body, has, err := s.payload(expand)
	if err != nil {
		return "", nil, nil, err
	}
	head = fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, host)
	typed := false
	for _, h := range s.Headers {
		head = append(append(head, expand(h)...), '\r', '\n')
		typed = typed || strings.HasPrefix(strings.ToLower(h), "content-type:")
	}
	if has && !typed {
		head = append(head, "Content-Type: application/json\r\n"...)
	}
	if slices.Contains(s.Send, "gzip") {
		head = append(head, "Content-Encoding: gzip\r\n"...)
	}
	if slices.Contains(s.Send, "expect") {
		head = append(head, "Expect: 100-continue\r\n"...)
	}
	switch {
	case slices.Contains(s.Send, "chunked"):
		head = append(head, "Transfer-Encoding: chunked\r\n"...)
		body = chunks(body)
	case has:
		head = fmt.Appendf(head, "Content-Length: %d\r\n", len(body))
	}
	return method, append(head, '\r', '\n'), body, nil
}

// unescape undoes Go's escapes.
func unescape(raw string) (string, error) {
	text, err := strconv.Unquote(`"` + raw + `"`)
	if err != nil {
		return "", fmt.Errorf("raw %q: %w", raw, err)
	}
	return text, nil
}

func (s *Step) payload(expand func(string) string) (body []byte, has bool, err error) {
	switch {
	case s.Body != nil:
		body = []byte(expand(*s.Body))
	case s.Lines != nil:
		for _, l := range s.Lines {
			body = append(append(body, expand(l)...), '\n')
		}
	default:
		return nil, false, nil
	}
	if slices.Contains(s.Send, "hex") {
		if body, err = hex.DecodeString(strings.Join(strings.Fields(string(body)), "")); err != nil {
			return nil, false, err
		}
	}
	if slices.Contains(s.Send, "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body) // a buffer takes everything
		_ = z.Close()
		body = b.Bytes()
	}
	return body, true, nil
}

// chunks writes a body in chunks of odd sizes, so that no boundary of chunks is one of the content.
func chunks(body []byte) []byte {
	var out []byte
	for n := 1; len(body) > 0; n = n*3 + 1 {
		k := min(n, len(body))
		out = append(append(fmt.Appendf(out, "%x\r\n", k), body[:k]...), '\r', '\n')
		body = body[k:]
	}
	return append(out, "0\r\n\r\n"...)
}
