package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// newDecoder is a decoder for one more file.
func newDecoder(cfg *Config, name string, data []byte) *decoder {
	cfg.sources = append(cfg.sources, source{name, lineBreak.Split(string(unmarked(data)), -1)})
	return &decoder{cfg: cfg, file: len(cfg.sources) - 1}
}

// lineBreak is what YAML's readers count as the end of a line.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u2028\u2029]")

// document reads the text's one document into what v points to, whose key is path.
func (d *decoder) document(data []byte, v any, path string) {
	data = unmarked(data)
	if at, reason := unreadable(data); reason != "" {
		d.failAt(at, "", "%s", reason)
		return
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil {
		var doc yaml.Node
		if err = loader.Load(&doc); err != nil || isNull(doc.Content[0]) {
			continue
		}
		if d.read {
			d.fail(doc.Content[0], "", "a second document begins here; optimist reads one")
			return
		}
		d.read = true
		d.decode(doc.Content[0], reflect.ValueOf(v).Elem(), path)
	}
	var syntax *yaml.LoadError
	switch {
	case errors.As(err, &syntax):
		d.syntax(syntax)
	case !errors.Is(err, io.EOF):
		d.failAt(Pos{}, "", "this is not YAML: %s", err)
	}
}

// unmarked is a text without the byte order mark, with which some editors begin a file.
func unmarked(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// unreadable finds the first byte or character that no text has, and says what it is. reason is empty if there is none.
func unreadable(data []byte) (at Pos, reason string) {
	at = Pos{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "this isn't UTF-8, which the file has to be in"
		case r == '\n':
			at = Pos{at.Line + 1, 0}
		case r != '\t' && r != '\r' && unicode.IsControl(r):
			return at, fmt.Sprintf("the character %U can't stand in a text; in double quotes it is written as an escape", r)
		}
		data = data[size:]
		at.Column++
	}
	return at, ""
}
