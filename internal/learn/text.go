package learn

import (
	"regexp"
	"strconv"

	"optimist/rewrite/tree"
)

// quote is a text as YAML, on one line whatever is in it.
func quote(s string) string {
	if plain.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// text is a number as it is written.
func text(d tree.Decimal) string {
	const most = 40 // bytes of a line that people read
	if b, ok := d.Append(nil); ok && len(b) <= most {
		return string(b)
	}
	return "a long number"
}

// plain matches what needs no quotes in YAML, in a flow either.
var plain = regexp.MustCompile(`^[/A-Za-z_][/A-Za-z0-9_.*~-]*$`)

// reserved are words that YAML, or an older one, takes for other values.
var reserved = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off|y|n)$`)
