package es

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"optimist/internal/jsontext"
)

// Bytes are a part of a record of optimist's own, byte for byte; nil is none. In JSON they are a string, with its characters as they are,
// or, where that can't hold them, an object with base64.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	switch {
	case b == nil:
		return []byte("null"), nil
	case !utf8.Valid(b):
		return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
	}
	return jsontext.Marshal(string(b))
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var s *string
	if json.Unmarshal(text, &s) == nil {
		*b = nil
		if s != nil {
			*b = Bytes(*s)
		}
		return nil
	}
	var coded struct{ Base64 []byte }
	err := json.Unmarshal(text, &coded)
	*b = coded.Base64
	return err
}
