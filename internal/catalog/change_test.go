package catalog

import (
	"strings"
	"testing"

	"optimist/internal/es"
)

func TestWhatStandsForSomethingElseIsNamed(t *testing.T) {
	index := func(id string, names ...string) es.Listed {
		l := es.Listed{ID: id, Names: map[string]string{}}
		for _, n := range names {
			name, set, _ := strings.Cut(n, "=")
			l.Names[name] = set
		}
		return l
	}
	for name, c := range map[string]struct {
		before, after es.Listing
		want          string
	}{
		"nothing":                 {es.Listing{"a": index("1", "x")}, es.Listing{"a": index("1", "x")}, ""},
		"deleted":                 {es.Listing{"a": index("1", "x"), "b": index("2", "y")}, es.Listing{"b": index("2", "y")}, "a,x"},
		"made anew":               {es.Listing{"a": index("1", "x")}, es.Listing{"a": index("2", "x")}, "a,x"},
		"restored":                {es.Listing{"a": index("1")}, es.Listing{"a": index("1h")}, "a"},
		"made":                    {es.Listing{}, es.Listing{"a": index("1", "x")}, "x"},
		"an alias moved":          {es.Listing{"a": index("1", "x"), "b": index("2")}, es.Listing{"a": index("1"), "b": index("2", "x")}, "x"},
		"an alias writes by it":   {es.Listing{"a": index("1", "x={}")}, es.Listing{"a": index("1", `x={"is_write_index":true}`)}, "x"},
		"an index changed places": {es.Listing{"a": index("1", "x"), "b": index("2")}, es.Listing{"b": index("2", "a")}, "a,x"},
	} {
		if got := strings.Join(Changed(c.before, c.after), ","); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
