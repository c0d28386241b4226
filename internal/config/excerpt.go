package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Excerpt is the line that the problem is in with a mark under its column, or "" if there is no line to show.
func (p Problem) Excerpt() string {
	if p.Pos.Line == 0 || strings.TrimSpace(p.Line) == "" {
		return ""
	}
	number := fmt.Sprintf("%5d", p.Pos.Line)
	line, column := window(p.Line, p.Pos.Column)
	var pad strings.Builder
	for i, r := range line {
		if i+1 >= column {
			break
		}
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return fmt.Sprintf("%s | %s\n%s | %s^\n", number, string(line), strings.Repeat(" ", len(number)), pad.String())
}

// The most characters that are printed: of a file's line, of a message, and of a text in a message. A file may be one long line, or no
// text.
const (
	maxLine    = 160
	maxMessage = 400
	maxText    = 60
)

// Both find what may be a URL with a password: password in a message, and credentials in a line of the file.
var (
	password    = regexp.MustCompile(`(")[^"]*:[^"]*@|[^\s"\[]*:[^\s"]*@`)
	credentials = regexp.MustCompile(`\S:\S.*@`)
)

// Redact takes what may be a password out of a value that is to be printed.
func Redact(value string) string {
	at := strings.LastIndexByte(value, '@')
	if at < 0 || !strings.Contains(value[:at], ":") {
		return value
	}
	return "…" + value[at:]
}

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

// window is the part of a line around a column, and that column within the part. Columns count from 1. A character that can't be printed,
// or that changes how other characters are printed, becomes a dot.
func window(line string, column int) (part []rune, at int) {
	part, at = []rune(line), column
	if len(part) > maxLine {
		from := max(0, min(column-1-maxLine/2, len(part)-maxLine))
		part, at = part[from:min(from+maxLine, len(part))], column-from
	}
	for i, r := range part {
		if r != '\t' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
			part[i] = '·'
		}
	}
	return part, at
}
