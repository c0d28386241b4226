package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
)

// A text that says more than the struct has is refused: the rest may have been meant to leave something out.
func TestStrictReadingLeavesNothingOut(t *testing.T) {
	for text, want := range map[string]bool{
		``: true, " \n": true, `{}`: true, `{"a":1} `: true,
		`{"b":1}`: false, `{"a":1}{"a":2}`: false, `{"a":1}x`: false, `{"a":`: false, `[]`: false, `{"a":"x"}`: false,
	} {
		into := struct{ A int }{A: 7}
		if err := Strict([]byte(text), &into); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Clients read what is wrong, and know no Go.
func TestStrictReadingSaysWhatIsWrong(t *testing.T) {
	type part struct {
		TTL string `json:"ttl"`
	}
	for text, want := range map[string]string{
		`{"undo":"true"}`:           `undo: want true or false; there is a string`,
		`{"ttl":30}`:                `ttl: want a string; there is a number`,
		`{"Ttl":30}`:                `ttl: want a string; there is a number`,
		`{"ids":"1"}`:               `ids: want an array; there is a string`,
		`{"ids":[1]}`:               `ids: want a string; there is a number`,
		`{"locks":{"token":"1"}}`:   `locks.token: want a whole number; there is a string`,
		`{"locks":{"token":1.5}}`:   `locks.token: want a whole number; there is 1.5`,
		`{"locks":[]}`:              `locks: want an object; there is an array`,
		`[]`:                        `the text: want an object; there is an array`,
		`{"ownr":"a"}`:              `"ownr" is not one of ids, locks, owner, ttl, undo; did you mean "owner"?`,
		`{"locks":{"tokn":1}}`:      `unknown field "tokn"`,
		`{"owner":"a"`:              `unexpected EOF`,
		`{"owner":"a"}{"undo":1}`:   `it goes on behind its JSON object`,
		`{"OWNER":"a","undo":true}`: ``,
	} {
		var into struct {
			part
			Owner string   `json:"owner"`
			Undo  bool     `json:"undo,omitempty"`
			IDs   []string `json:"ids"`
			Locks struct {
				Token int64 `json:"token"`
			} `json:"locks"`
			own    int
			Hidden json.Number `json:"-"`
		}
		got := ""
		if err := Strict([]byte(text), &into); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}

// TestAnErrorRepeatsLittleOfTheText: anybody may send megabytes of nonsense.
func TestAnErrorRepeatsLittleOfTheText(t *testing.T) {
	long := strings.Repeat("7", 1<<20)
	for _, text := range []string{`{"` + long + `":1}`, `{"lock":{"` + long + `":1}}`, `{"n":1` + long + `}`} {
		var into struct {
			N    int64           `json:"n"`
			Lock struct{ A int } `json:"lock"`
		}
		if err := Strict([]byte(text), &into); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.20s: %.200v", text, err)
		}
	}
}
