package config

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// JSON is a value of any kind in a file that Decode reads. Text has it as JSON, with its keys in the file's order, and its numbers digit by
// digit. IsSet is false if the file doesn't have the key. It is true for null.
type JSON struct {
	IsSet bool
	Text  json.RawMessage
}

// Null reports whether null was written.
func (j *JSON) Null() bool { return j.IsSet && string(j.Text) == "null" }

func (j *JSON) decodeNode(d *decoder, n *yaml.Node, path string) {
	*j = JSON{IsSet: true, Text: d.json(n, path)}
}

// Decoded is a file that Decode has read. It knows where each key stands.
type Decoded struct{ c *Config }

// Fail makes a problem about a key, as Config.Fail does.
func (f *Decoded) Fail(key, format string, args ...any) Problem {
	return f.c.Fail(key, format, args...)
}

// Line is the line of a key's value, or of the nearest section around it that the file has. It is 0 if there is none.
func (f *Decoded) Line(key string) int { return f.c.Fail(key, "").Pos.Line }

// Decode reads a YAML file that isn't a configuration, as strictly as one. Unknown keys, keys that are there twice, and values of the wrong
// type are mistakes, and all of them are reported at once. v points to a struct whose fields have json tags. The fields may be structs,
// slices, strings, ints, bools, pointers to these (nil without the key), JSON, and other types that a configuration has. Messages name the
// file by name. If the file has mistakes, v has the parts that could be read.
func Decode(name string, data []byte, v any) (*Decoded, Problems) {
	c := &Config{file: name, at: map[string]spot{}}
	d := newDecoder(c, name, data)
	d.foreign = true
	d.document(data, v, "")
	return &Decoded{c}, d.problems
}
