package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/printable"
)

// Pos is a place in the file; lines and columns count from 1, columns in characters. The zero value is no place.
type Pos struct{ Line, Column int }

// Severity is whether a problem keeps a configuration from being used.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // the configuration is not used
	Warning                 // it is used, and probably isn't what was meant
)

// String is error or warning.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Severity Severity
	Pos      Pos
	Origin   string // where the value came from: the file's name, or the flag and the variable
	Key      string // the key's path, as in rules[0].base.from; may be empty
	Message  string // what is wrong, and what would be right
	Line     string // the line of the file, for showing; empty if there is none

	full string // the key's path, with the file in front if it is one of rule_files
	file int    // the number of the file in Config.sources
}

// String is the problem in one line, safe to print, in the form that compilers use and editors understand: FILE:LINE:COLUMN: message.
func (p Problem) String() string {
	var b strings.Builder
	if p.Origin != "" {
		b.WriteString(p.Origin)
		if p.Pos.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Pos.Line, p.Pos.Column)
		}
		b.WriteString(": ")
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return printable.Line(b.String())
}

// Problems are all that was found in one configuration, in the file's order. As an error it is never empty and holds at
// least one of severity Error.
type Problems []Problem

// Error is all of them, one in a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// failed reports whether any problem stops the configuration from being used.
func (ps Problems) failed() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}

// Sort puts problems into the file's order. Problems without a place come first.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
}

// beside returns the problems of next without those in parts of rules that have a mistake already: nobody knows what such a part is meant
// to be.
func (ps Problems) beside(next Problems) Problems {
	known := map[string]bool{}
	for _, p := range ps {
		for key := p.full; key != "" && p.Severity == Error; key = parent(key) {
			known[key] = true
		}
	}
	return slices.DeleteFunc(next, func(p Problem) bool { return known[partOf(p.full)] })
}

// newProblem is a problem about a key, without its place.
func newProblem(severity Severity, key, format string, args ...any) Problem {
	message := password.ReplaceAllString(fmt.Sprintf(format, args...), "$1…@")
	return Problem{Severity: severity, Key: brief(localKey(key), maxMessage), full: key, Message: brief(message, maxMessage)}
}

// problem makes a Problem about a key. Its place is that of the key's value, or that of the nearest section around it that the file has.
func (c *Config) problem(severity Severity, key, format string, args ...any) Problem {
	p := newProblem(severity, key, format, args...)
	p.Origin = c.file
	if flag, ok := c.flags[key]; ok {
		p.Origin = flag
		return p
	}
	for k := key; k != ""; k = parent(k) {
		if at, ok := c.at[k]; ok {
			return c.placed(p, position(at.Node), at.file)
		}
	}
	return p
}

// FailInside is Fail about a place within the text that is a key's value. at counts lines and columns of that text, from 1.
func (c *Config) FailInside(key string, at Pos, format string, args ...any) Problem {
	p := c.problem(Error, key, format, args...)
	if s, ok := c.at[key]; ok && isText(s.Node) {
		return c.placed(p, inside(s.Node, c.sources[s.file].lines, at), s.file)
	}
	return p
}

// FilesOfRules gives, for each rule, the number of the file in which it stands.
func (c *Config) FilesOfRules() []int {
	files := make([]int, len(c.Rules))
	for i := range files {
		files[i] = c.at[c.RuleKey(i)].file
	}
	return files
}

// placed gives a problem its place, and the line at that place. It leaves out a line that may hold a password, because problems are logged.
func (c *Config) placed(p Problem, at Pos, file int) Problem {
	p.Pos, p.file = at, file
	p.Origin = c.sources[file].name
	if lines := c.sources[file].lines; at.Line > 0 && at.Line <= len(lines) && !credentials.MatchString(lines[at.Line-1]) {
		p.Line = lines[at.Line-1]
	}
	return p
}

// fileKey is the first part of the paths of all keys in a file of rule_files.
func fileKey(n int) string { return "@" + strconv.Itoa(n) }

// localKey is a key's path within its own file.
func localKey(key string) string {
	if !strings.HasPrefix(key, "@") {
		return key
	}
	_, rest, _ := strings.Cut(key, ".")
	return rest
}

// RuleKey is the path of a rule, for Warn and Fail. It names the file, too. The path in a Problem doesn't, because a Problem has the file's
// name anyway.
func (c *Config) RuleKey(i int) string {
	if key := c.Rules[i].key; key != "" {
		return key
	}
	return "rules[" + strconv.Itoa(i) + "]"
}

// Where is the place of a key as FILE:LINE:COLUMN, for messages about another key.
func (c *Config) Where(key string) string {
	p := c.problem(Error, key, "")
	return fmt.Sprintf("%s:%d:%d", p.Origin, p.Pos.Line, p.Pos.Column)
}

// Warn makes a warning about a key, for checks that need more than this package knows, such as a rule that another one hides.
func (c *Config) Warn(key, format string, args ...any) Problem {
	return c.problem(Warning, key, format, args...)
}

// Fail makes an error about a key, for checks that need more than this package knows, such as an expression that doesn't compile.
func (c *Config) Fail(key, format string, args ...any) Problem {
	return c.problem(Error, key, format, args...)
}
