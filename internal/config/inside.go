package config

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// inside finds the place of a character in a file. n is the text in the file that has this character, and want is the character's place
// within that text. The two places differ by the text's quotes, escapes, indentation and folded lines. If inside loses its way, it returns
// the beginning of the text.
func inside(n *yaml.Node, lines []string, want Pos) Pos {
	w := textWalk{file: []rune(strings.Join(lines[n.Line-1:], "\n"))}
	w.begin(n)
	here := Pos{Line: 1, Column: 1}
	for _, r := range strings.TrimRight(n.Value, " \n") { // a place behind the text's last sign is shown right behind that sign
		if here == want {
			break
		}
		if !w.step(r) {
			return position(n)
		}
		here.Column++
		if r == '\n' {
			here = Pos{Line: here.Line + 1, Column: 1}
		}
	}
	before := string(w.file[:w.at])
	return Pos{Line: n.Line + strings.Count(before, "\n"), Column: len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1}
}

// textWalk goes through a file and through the text that was read from it, character by character at the same time.
type textWalk struct {
	file  []rune
	at    int
	quote rune // around the text; 0 is none
}

// begin goes to the text's first character.
func (w *textWalk) begin(n *yaml.Node) {
	w.at = n.Column - 1
	if n.Anchor != "" {
		w.at += len([]rune("&" + n.Anchor))
		w.space()
	}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		for w.char() != '\n' { // the text begins below | or >
			w.at++
		}
		w.space()
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		w.quote = w.char()
		w.at++
	}
}

// char is the character at the place; behind the file it is the end of a line.
func (w *textWalk) char() rune {
	if w.at < len(w.file) {
		return w.file[w.at]
	}
	return '\n'
}

// space goes past white space, and reports whether there was an end of a line in it.
func (w *textWalk) space() (ended bool) {
	for w.at < len(w.file) && unicode.IsSpace(w.char()) {
		ended = ended || w.char() == '\n'
		w.at++
	}
	return ended
}

// step goes past the characters of the file that the text has as r. It reports false if the file has something else there.
func (w *textWalk) step(r rune) bool {
	start := w.at
	switch {
	case w.quote == '"' && w.char() == '\\':
		return w.escape(r)
	case w.quote == '\'' && w.char() == '\'':
		w.at += 2
		return r == '\''
	case r == ' ' || r == '\n': // a folded line break is read as a space, and some white space of the file as one sign
		if !w.space() {
			w.at = min(start+1, w.at)
		}
		return true
	}
	w.at++
	return w.at <= len(w.file) && w.file[start] == r
}

// escape goes past an escape in double quotes (YAML 1.2.2, §5.7).
func (w *textWalk) escape(r rune) bool {
	w.at++
	switch w.char() {
	case '\n': // an escaped end of a line is no part of the text
		w.space()
		return w.step(r)
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
