package gate

import (
	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
)

// textAt is the text at a place in a document; empty if there is none.
func textAt(source []byte, at []string) string {
	value := source
	for _, name := range at {
		if !jsontext.LooksLikeObject(value) {
			return ""
		}
		found := []byte(nil)
		for m := jsontext.Scan(value); m.Next(); {
			if plain, ok := m.PlainName(); ok && plain == name {
				found = m.Text()
			}
		}
		if value = found; value == nil {
			return ""
		}
	}
	v := gjson.ParseBytes(value)
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}
