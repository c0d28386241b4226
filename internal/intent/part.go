package intent

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/jsontext"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// Part is the `doc` of an _update: the engine merges its objects into the document's, key by key, and everything else takes the
// place of what was there; null, too, which is stored.
type Part []byte

// Apply implements Edit.
func (p Part) Apply(cur doc.Revision, in *edit.Inputs) (Draft, error) {
	return edited(p.in(cur.Source, in))
}

// in is the document with the part in it.
func (p Part) in(doc []byte, in *edit.Inputs) ([]byte, error) {
	return edit.EngineMerge(doc, p, tree.Limits{Growth: in.Growth, Room: in.Room})
}

// Repeatable implements Edit.
func (p Part) Repeatable() bool { return true }

// Same implements Edit.
func (p Part) Same(before, after []byte, _ tree.Room) bool { return string(before) == string(after) }

// HasOddKeys reports whether JSON has an object with a key twice, or a key with half a surrogate pair, which no pointer can name.
// Unreadable JSON counts as that, too, and so does JSON that doesn't fit into the room, which may be nil. Half a pair in a text isn't odd:
// programs that cut texts by UTF-16 units cut an emoji in two, and the engine keeps the half.
func HasOddKeys(b []byte, room tree.Room) bool {
	t := tree.Borrow()
	defer t.Return()
	if t.Parse(b, tree.Limits{Depth: jsontext.MaxNesting, Room: room}) != nil {
		return true
	}
	root := t.Root()
	root.Len() // marks what another member hides
	return root.Any(func(v tree.Value) bool {
		v.Len()
		return v.Hidden() || v.IsMember() && hasHalfSurrogates(v.KeyAndColon())
	})
}

// hasHalfSurrogates reports whether valid JSON has an escape in it that is half a character.
func hasHalfSurrogates(b []byte) bool {
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

// maxExact is how many digits of a decimal a double keeps for certain.
const maxExact = 15

// KeepsNumbers reports whether the engine, which reads decimals as doubles when it merges, stores the same numbers of a document.
func KeepsNumbers(document []byte) bool { return keepsNumbers(gjson.ParseBytes(document)) }

func keepsNumbers(v gjson.Result) (keeps bool) {
	switch {
	case v.IsObject() || v.IsArray():
		keeps = true
		v.ForEach(func(_, v gjson.Result) bool {
			keeps = keepsNumbers(v)
			return keeps
		})
		return keeps
	case v.Type != gjson.Number || !strings.ContainsAny(v.Raw, ".eE"):
		return true
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(v.Raw), "e")
	digits := strings.TrimLeft(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, mantissa), "0")
	size := math.Abs(v.Num)
	return len(digits) <= maxExact && (digits == "" || size > 1e-300 && size < 1e300)
}
