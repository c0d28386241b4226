package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errGoesOn reports a text with something behind its JSON object.
var errGoesOn = errors.New("it goes on behind its JSON object")

// Strict reads a JSON object into a struct, as package json does. White space alone leaves the struct as it is. A key that the struct
// doesn't have is an error: a misspelt key must not become the default. So is whatever follows the object. A number read into an any keeps
// its text.
func Strict(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errGoesOn
	}
	return nil
}
