package glob

import (
	"strings"
	"testing"
)

// What the engines show (seen on OpenSearch 3.8.0, Elasticsearch 7.10.2 and 9.5.3).
func TestFieldsAreThoseThatTheEnginesShow(t *testing.T) {
	const source = `{"a":2,"b":{"x":[{"k":1,"l":2},{"l":3},{}],"y":2.50,"z":null},"c":"z"}`
	for _, c := range []struct{ includes, excludes, want string }{
		{"a", "", `{"a":2}`},
		{"b", "b.x.l", `{"b":{"x":[{"k":1}],"y":2.50,"z":null}}`},
		{"", "*.l", `{"a":2,"b":{"x":[{"k":1}],"y":2.50,"z":null},"c":"z"}`},
		{"b.*", "b.x", `{"b":{"y":2.50,"z":null}}`},
		{"*y", "", `{"b":{"y":2.50}}`},
		{"none", "", `{}`},
	} {
		got := string(NewFields(split(c.includes), split(c.excludes)).Append(nil, []byte(source)))
		if got != c.want {
			t.Errorf("%s without %s: %s, want %s", c.includes, c.excludes, got, c.want)
		}
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// A small request can ask for some fields of a stored document again and again, however much that costs.
func TestPathsThatAreLongerThanTheDocumentCostNoMore(t *testing.T) {
	f := NewFields([]string{"a*"}, []string{"b", "c*"})
	document := func(size int) []byte {
		const depth = 100
		wide := strings.Repeat(`"c":1,`, size/12)
		return []byte(strings.Repeat(`{"`+strings.Repeat("k", size/2/depth)+`":`, depth) + "{" + wide + `"d":1}` + strings.Repeat("}", depth))
	}
	for _, size := range []int{16 << 10, 64 << 10, 256 << 10} {
		source := document(size)
		w := f.over(nil, source)
		if got := w.all(place{}); w.steps > w.most+len(source) || string(got) != string(source) {
			t.Errorf("%d bytes: %d steps, and %d bytes of it", len(source), w.steps, len(got))
		}
	}
	source := []byte(`{"a":` + strings.Repeat(`{"a_long_name_for_a_field":`, 20) + `{"c":1}` + strings.Repeat("}", 20) + `,"b":1}`)
	if got := string(f.Append(nil, source)); got != strings.TrimSuffix(string(source), `,"b":1}`)+"}" {
		t.Errorf("%s", got)
	}
}
