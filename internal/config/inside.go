package config

import (
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// inside is where in the file the place want of a text stands: quotes, escapes, indentation and folded lines lie between the two. Where
// that can't be told it is the beginning of the text.
func (c *Config) inside(s spot, want Pos) Pos {
	if s.file >= len(c.sources) || s.Line < 1 || s.Line > len(c.sources[s.file].lines) {
		return s.Pos
	}
	w := textWalk{lines: c.sources[s.file].lines, n: s.Line - 1}
	w.line, w.at = []rune(w.lines[w.n]), s.Column-1
	if _, block := s.text.(*ast.LiteralNode); block {
		if !w.nextLine() { // the text begins below | or >
			return s.Pos
		}
	} else if tk := s.text.GetToken(); tk != nil && (tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType) {
		w.quote = w.char()
		w.at++
	}
	here := Pos{Line: 1, Column: 1}
	for _, r := range strings.TrimRight(scalarText(s.text), " \n") { // what is missing at the end is missing there
		if here == want {
			break
		}
		if !w.step(r) {
			return s.Pos
		}
		here.Column++
		if r == '\n' {
			here = Pos{Line: here.Line + 1, Column: 1}
		}
	}
	return Pos{Line: w.n + 1, Column: w.at + 1}
}

// textWalk goes through the lines of a file along with the text that was read from them.
type textWalk struct {
	lines []string
	n     int    // of the line, from 0
	line  []rune // that line
	at    int    // in it, from 0
	quote rune   // around the text; 0 is none
}

// char is the character at the place; 0 behind the line.
func (w *textWalk) char() rune {
	if w.at < len(w.line) {
		return w.line[w.at]
	}
	return 0
}

// step goes on over what was read as r, and reports false where that isn't there.
func (w *textWalk) step(r rune) bool {
	switch {
	case w.quote == '"' && w.char() == '\\':
		return w.escape(r)
	case w.quote == '\'' && w.char() == '\'':
		w.at += 2
		return r == '\''
	case r == ' ' || r == '\n':
		return w.space()
	case w.char() == r:
		w.at++
		return true
	}
	return false
}

// space goes on over white space: a folded line is one, and more of it may have been read than stands here, or less.
func (w *textWalk) space() bool {
	switch {
	case w.blank():
		w.nextLine() // there is none where the text ends
	case unicode.IsSpace(w.char()):
		w.at++
	}
	return true
}

// blank reports whether nothing more is in the line.
func (w *textWalk) blank() bool {
	for _, r := range w.line[min(w.at, len(w.line)):] {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// nextLine goes to the beginning of the next line that isn't empty.
func (w *textWalk) nextLine() bool {
	for w.n+1 < len(w.lines) {
		w.n++
		w.line, w.at = []rune(w.lines[w.n]), 0
		if w.blank() {
			continue
		}
		for unicode.IsSpace(w.char()) {
			w.at++
		}
		return true
	}
	return false
}

// escape goes on over an escape in double quotes (YAML 1.2.2, §5.7).
func (w *textWalk) escape(r rune) bool {
	w.at++
	switch w.char() {
	case 0: // the end of the line is escaped: it isn't there
		return w.nextLine() && w.step(r)
	case 'x':
		w.at += 3
	case 'u':
		w.at += 5
	case 'U':
		w.at += 9
	default:
		w.at++
	}
	return true
}
