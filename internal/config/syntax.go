package config

import (
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// syntax reports a place that isn't YAML, and says what would be right. The library's own error says what its parser expected: that helps
// only people who know the parser.
func (d *decoder) syntax(e *yaml.LoadError) {
	m := syntaxMistake{decoder: d, at: Pos{e.Mark.Line, e.Mark.Column}, from: Pos{e.ContextMark.Line, e.ContextMark.Column}}
	m.here, m.begin = d.rest(m.at), d.rest(m.from)
	if m.blank() || m.sign() || m.expected(e.Message) {
		return
	}
	if m.atEnd() { // what begins there has no end
		m.at = m.from
	}
	d.failAt(m.at, "", "this is not YAML: %s", strings.TrimSpace(e.Message+" "+e.ContextMsg))
}

// syntaxMistake is a mistake as the parser reports it: at is the place where it couldn't go on, and from the beginning of the value that it
// was reading.
type syntaxMistake struct {
	*decoder
	at, from    Pos
	here, begin string // the lines at these places, from there on; begin is empty if the parser doesn't report from
}

// atEnd reports whether the file, or the line, ended in the middle of a value.
func (m *syntaxMistake) atEnd() bool { return strings.TrimSpace(m.here) == "" && m.begin != "" }

// blank reports a character that looks like a space, or can't be seen, and that YAML doesn't take for a space. Texts that are copied from
// web pages have such characters. It may stand in the line above the mistake, because the parser goes on for a while.
func (m *syntaxMistake) blank() bool {
	for _, line := range []int{m.at.Line, m.at.Line - 1} {
		text := m.rest(Pos{line, 1})
		before, _, _ := strings.Cut(text, "#")
		for i, r := range []rune(before) {
			if r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)) {
				m.failAt(Pos{line, i + 1}, "", "the character %U is no space to YAML, though it may look like one; write a space, or leave it out", r)
				return true
			}
		}
	}
	return false
}

// sign reports a mistake that a sign at the place explains: a tab, or a sign with which a text begins only in quotes.
func (m *syntaxMistake) sign() bool {
	const quotes = "no text begins with %s unless it is in quotes"
	alias, from := m.begin, m.from
	if strings.HasPrefix(m.here, "*") {
		alias, from = m.here, m.at
	}
	switch {
	case strings.HasPrefix(alias, "*"):
		word, _, _ := strings.Cut(alias+" ", " ")
		word = strings.TrimRight(word, ",]}")
		m.failAt(from, "", "there is no anchor for the alias %s; if it is meant as text, write it in quotes: %q", word, word)
	case strings.HasPrefix(m.here, "\t"):
		m.failAt(m.at, "", "a tab can't indent here; YAML wants spaces")
	case beginsWith(m.here, "%") && m.at.Column == 1, beginsWith(m.begin, "%") && m.from.Column == 1:
		m.failAt(Pos{m.at.Line, 1}, "", "a line that begins with %% isn't read here; leave it out")
	case beginsWith(m.here, "@`%"), beginsWith(m.here, ",]}") && m.at == m.from:
		m.failAt(m.at, "", quotes, m.here[:1])
	case beginsWith(m.begin, "&!|>"):
		m.failAt(m.from, "", quotes, m.begin[:1])
	default:
		return false
	}
	return true
}

func beginsWith(text, signs string) bool { return text != "" && strings.ContainsAny(text[:1], signs) }

// expected reports a mistake that the parser's message explains.
func (m *syntaxMistake) expected(what string) bool {
	switch what {
	case "mapping values are not allowed in this context":
		m.colon()
	case "did not find expected key", "did not find expected '-' indicator":
		if at := glued.FindStringSubmatchIndex(m.before()); at != nil {
			m.failAt(Pos{m.at.Line, at[2] + 1}, "", noColon)
		} else if strings.TrimSpace(m.before()) != "" {
			m.failAt(m.at, "", "this can't follow the value before it; if both are one text, write all of it in quotes")
		} else {
			m.failAt(m.at, "", "this line fits into no section: the keys of a section, and the entries of a list, begin in the same column")
		}
	case "could not find expected ':'":
		m.failAt(m.from, "", noColon)
	case "block sequence entries are not allowed in this context":
		m.failAt(m.at, "", "a list can't begin in the line of its key; begin it in the next line, or write it in [ ]")
	case "did not find expected ',' or '}'", "did not find expected ',' or ']'":
		m.bracket()
	case "did not find expected node content":
		return m.unclosed()
	case "found unexpected end of stream":
		m.failAt(m.from, "", "this text has no closing quote")
	case "found unknown escape character":
		escape := string([]rune(m.here + "  ")[:2])
		m.failAt(m.at, "", `%s is no escape; write \%s, or the text in single quotes`, escape, escape)
	case "exceeded max depth of 10000":
		m.failAt(m.at, "", "this is nested too deeply: 10000 levels at most")
	default:
		return false
	}
	return true
}

// before is what stands in the line before the place.
func (m *syntaxMistake) before() string {
	line := m.rest(Pos{m.at.Line, 1})
	return strings.TrimSuffix(line, m.here)
}

// noSpace is a text in which a key was meant: level:debug, and not http://127.0.0.1.
var noSpace = regexp.MustCompile(`^[a-z_]+:/?[^\s/]`)

// glued is a key whose list or keys begin right behind the colon, which makes a text of both.
var glued = regexp.MustCompile(`^[ -]*([a-z_]+):[\[{]`)

const noColon = "a key needs a colon behind it, and a space behind the colon, as in mode: guard"

// keyed is a line with a key, a comment or nothing.
var keyed = regexp.MustCompile(`:(\s|$)|^\s*(#|-?\s*$)`)

// colon reports a colon where no key can stand: behind another value, below a line that isn't complete, or with the wrong indentation.
func (m *syntaxMistake) colon() {
	line := m.at.Line - 1
	for line > 1 && strings.TrimSpace(m.rest(Pos{line, 1})) == "" {
		line--
	}
	above := m.rest(Pos{line, 1})
	switch {
	case strings.Contains(m.before(), ": "):
		m.failAt(m.at, "", "a second colon in one line; write a text with a colon in quotes, and the next key in the next line")
	case line > 0 && !keyed.MatchString(above):
		m.failAt(Pos{line, 1 + len(above) - len(strings.TrimLeft(above, " -"))}, "", noColon)
	default:
		m.failAt(m.at, "",
			"this key is indented too far: the line above has a value already, and the keys of a section begin in the same column")
	}
}

// bracket reports a list in [ ], or keys in { }, in which a comma or the closing bracket is missing.
func (m *syntaxMistake) bracket() {
	begin, end := "[", "]"
	if strings.HasPrefix(m.begin, "{") {
		begin, end = "{", "}"
	}
	switch {
	case m.atEnd():
		m.failAt(m.from, "", "no %s closes the %s here", end, begin)
	case m.at.Line == m.from.Line:
		m.failAt(m.at, "", "a comma or a %s is missing before this", end)
	default:
		m.failAt(m.at, "", "a comma or a %s is missing before this; the %s is in line %d", end, begin, m.from.Line)
	}
}

// unclosed reports a bracket that nothing closes up to the end of the file.
func (m *syntaxMistake) unclosed() bool {
	if strings.TrimSpace(m.here) != "" {
		return false
	}
	var open []Pos
	for i, line := range m.cfg.sources[m.file].lines {
		quote, before := rune(0), ' '
		for j, r := range []rune(line) {
			switch {
			case quote != 0:
				if r == quote {
					quote = 0
				}
			case r == '#' && before == ' ':
				quote = '\n' // a comment has no end in its line
			case r == '"' || r == '\'':
				quote = r
			case r == '[' || r == '{':
				open = append(open, Pos{i + 1, j + 1})
			case (r == ']' || r == '}') && len(open) > 0:
				open = open[:len(open)-1]
			}
			before = r
		}
	}
	if len(open) == 0 {
		return false
	}
	m.from = open[len(open)-1]
	m.begin = m.rest(m.from)
	m.at, m.here = Pos{}, ""
	m.bracket()
	return true
}

// rest is the part of the file's line from a place on.
func (d *decoder) rest(at Pos) string {
	lines := d.cfg.sources[d.file].lines
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	line := []rune(lines[at.Line-1])
	return string(line[min(max(at.Column-1, 0), len(line)):])
}
