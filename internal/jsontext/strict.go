package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"optimist/internal/spelling"
)

// errGoesOn reports a text with something behind its JSON object.
var errGoesOn = errors.New("it goes on behind its JSON object")

// Strict reads a JSON object into a struct, as package json does. White space alone leaves the struct as it is. A key that the struct
// doesn't have is an error: a misspelt key must not become the default. So is whatever follows the object. A number read into an any keeps
// its text. Errors are for whoever has written the text, and name no type of Go.
func Strict(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return inWords(err, text, reflect.TypeOf(into).Elem())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errGoesOn
	}
	return nil
}

// shown is how much an error repeats of a text, in characters: whoever has written it may have written megabytes.
const shown = 100

// inWords is why a text can't be read into a struct of a type.
func inWords(err error, text []byte, into reflect.Type) error {
	known := map[string]bool{}
	keys(into, known)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		at := strings.Split(kind.Field, ".")
		for len(at) > 1 && !known[at[0]] { // the name of an embedded struct is no key
			at = at[1:]
		}
		where := strings.Join(at, ".")
		if where == "" {
			where = "the text"
		}
		return fmt.Errorf("%s: want %s; there is %s", where, wanted(kind.Type), found(kind.Value))
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) == nil {
		names := slices.Sorted(maps.Keys(known))
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, key) }) {
				return errors.New(spelling.NotOneOf(fmt.Sprintf("%.*s", shown, key), names))
			}
		}
	}
	return fmt.Errorf("%.*s", shown, strings.TrimPrefix(err.Error(), "json: "))
}

// keys adds the keys that package json takes for a struct.
func keys(t reflect.Type, known map[string]bool) {
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			keys(f.Type, known)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			known[name] = true
		}
	}
}

// wanted is what JSON calls the values of a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// found is a kind of value as package json calls it, or a number.
func found(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); {
	case number != "":
		return fmt.Sprintf("%.*s", shown, number)
	case kind == "array", kind == "object":
		return "an " + kind
	case kind == "bool":
		return "true or false"
	}
	return "a " + value
}
