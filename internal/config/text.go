package config

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// unmarked is a text without the mark of its order of bytes, with which some editors begin a file.
func unmarked(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// unreadable finds the first thing in a file that stands in no text, and says what it is; reason is empty where there is nothing.
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

// deepest is how deep a file may be nested. The library's parser takes memory by the square of the depth.
const deepest = 200

// tooDeep is where a file is nested deeper than that, or nil. Keys that are nested by their indentation take their room themselves.
func tooDeep(tokens token.Tokens) *token.Token {
	open, dashes, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType:
			if t.Position.Line != line {
				dashes, line = 0, t.Position.Line
			}
			dashes++
		default:
			continue
		}
		if open > deepest || dashes > deepest {
			return t
		}
	}
	return nil
}

// The lengths, in characters, of what is shown of a line, and of what is said of a problem: a file may be of one line, or no text at all.
const (
	shownLine    = 160
	shownMessage = 400
	shownText    = 60
)

// brief is a text with its middle left out, if it is longer than n characters.
func brief(text string, n int) string {
	if len(text) <= n {
		return text
	}
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n*3/4]) + " … " + string(r[len(r)-n/4:])
}

// window is what is shown of a line around a column, from 1, and the column in that. What isn't printed, or changes how it is, is a dot.
func window(line string, column int) (part []rune, at int) {
	part, at = []rune(line), column
	if len(part) > shownLine {
		from := max(0, min(column-1-shownLine/2, len(part)-shownLine))
		part, at = part[from:min(from+shownLine, len(part))], column-from
	}
	for i, r := range part {
		if r != '\t' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
			part[i] = '·'
		}
	}
	return part, at
}
