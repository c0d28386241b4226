package rewrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"optimist/rewrite/tree"
)

// The generators make few keys and few values, so that documents that come from one base meet in the same places.

var genKey = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "", "a/b", "m~n", "ü", "*", "0", `q"`})

// written is the number of ways in which write may write the same content.
const written = 3

// genNumber yields spellings of few different values.
var genNumber = rapid.SampledFrom([]string{"0", "-0", "0.0", "1", "1.0", "10e-1", "2", "-3", "2.50", "25e-1", "9007199254740993",
	"9223372036854775807", "123456789012345678901234567890.12", "1e400", "1E+400"})

// genValue yields plain Go values as encoding/json has them, objects as members in order.
func genValue(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Map(genNumber, func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "y", "é", "\n", `"`, "😀"}), func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, false}),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar, scalar,
		rapid.Map(genObject(depth-1), func(o object) any { return o }),
		rapid.Map(rapid.SliceOfN(genValue(depth-1), 0, 5), func(l []any) any { return l }))
}

type member struct {
	key string
	val any
}

type object []member

func genObject(depth int) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		keys := rapid.SliceOfNDistinct(genKey, 0, 6, rapid.ID[string]).Draw(t, "keys")
		var o object
		for _, k := range keys {
			o = append(o, member{k, genValue(depth).Draw(t, "value")})
		}
		return o
	})
}

func (o object) find(key string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.key == key })
}

// genEdit yields a changed copy of v: some members and elements set, added, removed, moved.
func genEdit(t *rapid.T, v any, edits int) any {
	for range edits {
		v = editOnce(t, v)
	}
	return v
}

func editOnce(t *rapid.T, v any) any {
	switch v := v.(type) {
	case object:
		o := slices.Clone(v)
		key := genKey.Draw(t, "edited key")
		i := o.find(key)
		switch op := rapid.IntRange(0, 5).Draw(t, "edit"); {
		case i < 0:
			return append(o, member{key, genValue(1).Draw(t, "added")})
		case op == 0:
			return slices.Delete(o, i, i+1)
		case op == 1:
			o[i].val = genValue(1).Draw(t, "set")
		default:
			o[i].val = editOnce(t, o[i].val)
		}
		return o
	case []any:
		l := slices.Clone(v)
		i := rapid.IntRange(0, len(l)).Draw(t, "index")
		switch op := rapid.IntRange(0, 4).Draw(t, "edit"); {
		case i == len(l) || op == 0:
			return slices.Insert(l, i, genValue(1).Draw(t, "inserted"))
		case op == 1:
			return slices.Delete(l, i, i+1)
		case op == 2:
			e := l[i]
			l = slices.Delete(l, i, i+1)
			return slices.Insert(l, rapid.IntRange(0, len(l)).Draw(t, "moved to"), e)
		default:
			l[i] = editOnce(t, l[i])
		}
		return l
	}
	return genValue(1).Draw(t, "set")
}

// write spells a value as JSON, in one of several ways.
func write(t *rapid.T, v any) []byte {
	w := writer{way: rapid.IntRange(0, written-1).Draw(t, "way")}
	w.value(v)
	return w.out
}

type writer struct {
	out []byte
	way int
}

func (w *writer) space() {
	if w.way == 1 {
		w.out = append(w.out, " \n\t "...)
	}
}

func (w *writer) text(s string) {
	if w.way != 2 {
		w.out = tree.AppendString(w.out, s)
		return
	}
	w.out = append(w.out, '"')
	for _, r := range s {
		if r > 0xFFFF {
			w.out = fmt.Appendf(w.out, `\u%04X\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
			continue
		}
		w.out = fmt.Appendf(w.out, `\u%04X`, r)
	}
	w.out = append(w.out, '"')
}

func (w *writer) value(v any) {
	w.space()
	switch v := v.(type) {
	case object:
		w.out = append(w.out, '{')
		for i, m := range v {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.space()
			w.text(m.key)
			w.space()
			w.out = append(w.out, ':')
			w.value(m.val)
		}
		w.space()
		w.out = append(w.out, '}')
	case []any:
		w.out = append(w.out, '[')
		for i, e := range v {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.value(e)
		}
		w.out = append(w.out, ']')
	case string:
		w.text(v)
	case json.Number:
		w.out = append(w.out, v...)
	default:
		text, _ := json.Marshal(v)
		w.out = append(w.out, text...)
	}
	w.space()
}

// genDocs yields a base and two documents that come from it.
func genDocs(t *rapid.T) (base, sent, current []byte) {
	b := any(genObject(3).Draw(t, "base"))
	s := genEdit(t, b, rapid.IntRange(0, 4).Draw(t, "edits sent"))
	c := genEdit(t, b, rapid.IntRange(0, 4).Draw(t, "edits current"))
	return write(t, b), write(t, s), write(t, c)
}

// tb is what *rapid.T and *testing.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// decode reads JSON by encoding/json into values that reflect.DeepEqual can compare: numbers as exact fractions.
func decode(t tb, src []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, src)
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case json.Number:
		r, ok := new(big.Rat).SetString(string(v))
		if !ok {
			panic("not a number: " + v)
		}
		return "number " + r.RatString()
	case string:
		return "string " + v
	}
	return v
}

// sameDoc compares two documents by what they mean.
func sameDoc(t tb, a, b []byte) bool {
	t.Helper()
	return fmt.Sprint(decode(t, a)) == fmt.Sprint(decode(t, b))
}

func mustMerger(t tb, def Strategy, rules ...PathRule) *Merger {
	t.Helper()
	m, err := NewMerger(def, rules)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func jsonCompact(src []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		panic(err)
	}
	return b.String()
}
