package wire

import "bytes"

// Value is the value of the first field of a name, in any case; nil if there is none.
func Value(fields []Field, name string) []byte {
	for i := range fields {
		if EqualFold(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

// JSONBody reports whether a body with these fields is JSON, by its Content-Type; content codings are read by nobody here.
func JSONBody(fields []Field) bool {
	for i := range fields {
		if EqualFold(fields[i].Name, "content-encoding") {
			return false
		}
		if EqualFold(fields[i].Name, "content-type") {
			return jsonMedia(fields[i].Value)
		}
	}
	return true
}

// JSONMedia reports whether the Content-Type is JSON's, or there is none, whatever the coding.
func JSONMedia(fields []Field) bool {
	v := Value(fields, "content-type")
	return v == nil || jsonMedia(v)
}

// NDJSONBody reports whether a body is JSON, one value a line, compressed or not, as far as its fields say.
func NDJSONBody(fields []Field) bool {
	media := bytes.ToLower(Value(fields, "content-type"))
	return media == nil || jsonMedia(media) ||
		bytes.HasPrefix(media, []byte("application/x-ndjson")) || bytes.Contains(media, []byte("+x-ndjson"))
}

// jsonMedia reports whether a media type is JSON, or the text that curl users send as JSON.
func jsonMedia(v []byte) bool {
	const usual, text = "application/json", "text/plain"
	if len(v) >= len(usual) && EqualFold(v[:len(usual)], usual) || len(v) >= len(text) && EqualFold(v[:len(text)], text) {
		return true
	}
	return bytes.Contains(bytes.ToLower(v), []byte("+json"))
}

// AcceptsJSON reports whether the client asked for an answer in JSON, or didn't say.
func AcceptsJSON(fields []Field) bool {
	v := Value(fields, "accept")
	return v == nil || bytes.Contains(v, []byte("json")) || bytes.Contains(v, []byte("*/*"))
}
