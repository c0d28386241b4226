package config

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// JSON is a value of any kind in a file that Decode reads, as JSON: keys in their order, numbers digit by digit as they were written.
// IsSet tells null from nothing.
type JSON struct {
	IsSet bool
	Text  json.RawMessage
}

// Null reports whether null was written.
func (j *JSON) Null() bool { return j.IsSet && string(j.Text) == "null" }

func (j *JSON) decodeNode(d *decoder, n *yaml.Node, path string) {
	*j = JSON{IsSet: true, Text: d.json(n, path)}
}

// Decoded is a file that Decode has read: it knows where each key stands.
type Decoded struct{ c *Config }

// Fail makes a problem about a key, with the place where its value stands, or its nearest parent that has one.
func (f *Decoded) Fail(key, format string, args ...any) Problem {
	return f.c.Fail(key, format, args...)
}

// Line is the line in which a key's value, or that of its nearest parent, stands; 0 where that isn't known.
func (f *Decoded) Line(key string) int { return f.c.Fail(key, "").Pos.Line }

// Decode reads a YAML file that isn't a configuration as strictly as one: unknown keys, keys that are there twice and values of another
// type are mistakes, all reported at once. v points to a struct whose fields have json tags; they may be structs, slices, strings, ints,
// bools, pointers to them (nil without the key), JSON, and other types that a configuration has. name stands in messages. If the file has
// mistakes, v holds the parts that could be read.
func Decode(name string, data []byte, v any) (*Decoded, Problems) {
	c := &Config{file: name, at: map[string]spot{}}
	d := newDecoder(c, name, data)
	d.other = true
	d.document(data, v, "")
	return &Decoded{c}, d.problems
}
