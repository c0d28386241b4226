package intent

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/rewrite"
)

// Part is the `doc` of an _update: the engine merges its objects into the document's, key by key, and everything else takes the place
// of what was there; null, too, which is stored.
type Part []byte

// Apply implements Edit.
func (p Part) Apply(doc []byte, _ *rewrite.Inputs) ([]byte, error) {
	ops := merging(nil, "", gjson.ParseBytes(doc), gjson.ParseBytes(p))
	if len(ops) == 0 {
		return doc, nil
	}
	return ops.Apply(doc)
}

// Repeatable implements Edit.
func (p Part) Repeatable() bool { return true }

// Same implements Edit.
func (p Part) Same(before, after []byte) bool { return string(before) == string(after) }

// merging appends the operations that merge part into the object cur, at a path.
func merging(ops rewrite.Patch, path string, cur, part gjson.Result) rewrite.Patch {
	there := map[string]gjson.Result{}
	cur.ForEach(func(k, v gjson.Result) bool {
		there[k.String()] = v
		return true
	})
	part.ForEach(func(k, v gjson.Result) bool {
		key := k.String()
		at := path + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
		switch old, found := there[key]; {
		case found && old.IsObject() && v.IsObject():
			ops = merging(ops, at, old, v)
		case !found || !sameToEngine(old, v):
			ops = append(ops, rewrite.Operation{Op: "add", Path: at, Value: []byte(v.Raw)})
		}
		return true
	})
	return ops
}

// sameToEngine compares as the engine does when it looks for a noop: keys in any order; 1 and 1.0 differ, 1.0 and 1.00 don't.
func sameToEngine(a, b gjson.Result) bool {
	switch {
	case a.Type != b.Type || a.IsObject() != b.IsObject():
		return false
	case a.Raw == b.Raw:
		return true
	case a.Type == gjson.String:
		return a.Str == b.Str
	case a.Type == gjson.Number:
		x, err1 := strconv.ParseFloat(a.Raw, 64)
		y, err2 := strconv.ParseFloat(b.Raw, 64)
		return decimal(a.Raw) && decimal(b.Raw) && x == y && err1 == nil && err2 == nil
	case a.IsArray():
		x, y := a.Array(), b.Array()
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameToEngine(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	x, y := a.Map(), b.Map()
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if w, found := y[k]; !found || !sameToEngine(v, w) {
			return false
		}
	}
	return true
}

func decimal(number string) bool { return strings.ContainsAny(number, ".eE") }

// HasHalfSurrogates reports whether valid JSON has an escape in it that is half a character.
func HasHalfSurrogates(b []byte) bool {
	for i := bytes.IndexByte(b, '\\'); i >= 0 && i+1 < len(b); i++ {
		switch {
		case b[i] != '\\':
			continue
		case b[i+1] != 'u':
			i++ // what is escaped begins no escape
			continue
		}
		switch r := escaped(b[i:]); {
		case !utf16.IsSurrogate(r):
			i += 5
		case utf16.DecodeRune(r, escaped(b[min(i+6, len(b)):])) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

// escaped is the half or the whole character of the escape \uXXXX that a text begins with, else 0.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// RepeatsKeys reports whether valid JSON has an object with a key twice.
func RepeatsKeys(b []byte) bool { return repeatsKeys(gjson.ParseBytes(b)) }

func repeatsKeys(v gjson.Result) (found bool) {
	var seen map[string]bool
	if v.IsObject() {
		seen = map[string]bool{}
	} else if !v.IsArray() {
		return false
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if found = repeatsKeys(v); seen != nil && !found {
			name := k.String()
			found = seen[name]
			seen[name] = true
		}
		return !found
	})
	return found
}
