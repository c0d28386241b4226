package embedded

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// dateMath resolves a name like <logs-{now/d}> (the engine's date math in index names); other names stay as they are.
func (e *Engine) dateMath(name string) (string, *Error) {
	if len(name) < 2 || name[0] != '<' || name[len(name)-1] != '>' {
		return name, nil
	}
	var out strings.Builder
	for rest := name[1 : len(name)-1]; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		out.WriteString(before)
		if !found {
			break
		}
		end := closing(after)
		if end < 0 {
			return "", badRequest("parse_exception", "invalid dynamic name expression [%s]. date math placeholder is open ended", name[1:len(name)-1])
		}
		text, err := e.datePart(after[:end])
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		rest = after[end+1:]
	}
	return out.String(), nil
}

// closing finds the brace that ends a placeholder.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch {
		case s[i] == '{':
			depth++
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		}
	}
	return -1
}

// datePart renders one placeholder: expression{format|zone}.
func (e *Engine) datePart(s string) (string, *Error) {
	expr, format, _ := strings.Cut(s, "{")
	format, zone, _ := strings.Cut(strings.TrimSuffix(format, "}"), "|")
	format = cmp.Or(format, "yyyy.MM.dd")
	where := time.UTC
	if zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			if t, perr := time.Parse("-07:00", zone); perr == nil {
				loc = t.Location()
			} else {
				return "", badRequest("parse_exception", "invalid time zone [%s]", zone)
			}
		}
		where = loc
	}
	t, ok := shiftDate(e.clock().In(where), expr)
	if !ok {
		return "", badRequest("parse_exception", "failed to parse date field [%s]", expr)
	}
	return formatJavaDate(format, t), nil
}

// shiftDate evaluates now, followed by steps like -1d and roundings like /d.
func shiftDate(now time.Time, expr string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(expr, "now")
	for ok && rest != "" {
		sign, body := rest[0], rest[1:]
		digits := 0
		for digits < len(body) && body[digits] >= '0' && body[digits] <= '9' {
			digits++
		}
		if len(body) == digits {
			return now, false
		}
		n := 1
		if digits > 0 {
			n, _ = strconv.Atoi(body[:digits])
		}
		unit := body[digits]
		switch sign {
		case '+':
			now, ok = stepDate(now, n, unit)
		case '-':
			now, ok = stepDate(now, -n, unit)
		case '/':
			now, ok = floorDate(now, unit)
		default:
			ok = false
		}
		rest = body[digits+1:]
	}
	return now, ok
}

// units are the steps of date math.
var units = map[byte]struct {
	years, months, days int
	time                time.Duration
}{
	'y': {years: 1}, 'M': {months: 1}, 'w': {days: 7}, 'd': {days: 1},
	'h': {time: time.Hour}, 'H': {time: time.Hour}, 'm': {time: time.Minute}, 's': {time: time.Second},
}

func stepDate(t time.Time, n int, unit byte) (time.Time, bool) {
	u, ok := units[unit]
	return t.AddDate(n*u.years, n*u.months, n*u.days).Add(time.Duration(n) * u.time), ok
}

// floorDate is the beginning of the unit that t is in.
func floorDate(t time.Time, unit byte) (time.Time, bool) {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	switch unit {
	case 'y':
		month = time.January
		fallthrough
	case 'M':
		day = 1
		fallthrough
	case 'd':
		hour = 0
		fallthrough
	case 'h', 'H':
		minute = 0
		fallthrough
	case 'm':
		second = 0
	case 'w':
		day, hour, minute, second = day-(int(t.Weekday())+6)%7, 0, 0, 0
	}
	_, ok := units[unit]
	return time.Date(year, month, day, hour, minute, second, 0, t.Location()), ok
}

// formatJavaDate renders the letters of Java's date patterns that index names use.
func formatJavaDate(pattern string, t time.Time) string {
	var out strings.Builder
	for i := 0; i < len(pattern); {
		n := 1
		for i+n < len(pattern) && pattern[i+n] == pattern[i] {
			n++
		}
		layout := map[byte]string{'y': "2006", 'u': "2006", 'Y': "2006", 'M': "01", 'd': "02", 'H': "15", 'm': "04", 's': "05"}[pattern[i]]
		switch {
		case layout == "":
			out.WriteString(pattern[i : i+n])
		case layout == "2006" && n == 2:
			out.WriteString(t.Format("06"))
		default:
			out.WriteString(t.Format(layout))
		}
		i += n
	}
	return out.String()
}
