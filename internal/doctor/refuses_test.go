package doctor

import (
	"strings"
	"testing"
)

// The verdict was that it will work, and every write failed.
func TestIndicesThatRefuseEveryWriteAreFound(t *testing.T) {
	strict := `"mappings":{"dynamic":"strict","properties":{"n":{"type":"long"},"o":{"properties":{"x":{"type":"long"}}},` +
		`"free":{"dynamic":"true","type":"object"},"flat":{"type":"flattened"},"_w":{"type":"keyword"},` +
		`"any":{"type":"object","enabled":false}}}`
	for name, c := range map[string]struct {
		rule, index string
		level       Level
		why         string
	}{
		"blocked":                  {"", `"settings":{"index":{"blocks":{"write":"true"}}}`, Fail, "index.blocks.write"},
		"read only":                {"", `"settings":{"index":{"blocks":{"read_only_allow_delete":"true"}}}`, Fail, "index.blocks.read_only_allow_delete"},
		"unblocked":                {"", `"settings":{"index":{"blocks":{"write":"false"}}}`, OK, ""},
		"marks":                    {"write_id: _m", strict, Fail, "write_id: the mapping is `dynamic: strict`, and has no field _m"},
		"marks, observed":          {"write_id: _m, mode: observe", strict, OK, ""},
		"marks that are mapped":    {"write_id: _w", strict, OK, ""},
		"marks as numbers":         {"write_id: n", strict, Fail, "write_id: n is mapped as long"},
		"marks as objects":         {"write_id: o", strict, Fail, "write_id: o is mapped as object"},
		"marks as anything":        {"write_id: any", strict, OK, ""},
		"marks, dynamic":           {"write_id: _m", `"mappings":{"properties":{"n":{"type":"long"}}}`, OK, ""},
		"a stamp":                  {"base: {stamp: _rev}", strict, OK, ""},
		"a stamp in place of one":  {"base: {stamp: n}", strict, Fail, "base.stamp: n is a field of the documents' own (long)"},
		"a step":                   {"transform: [{op: now, path: /at}]", strict, Fail, "transform: the mapping is `dynamic: strict`, and has no field at"},
		"a step below":             {"transform: [{op: increment, path: /o/y, value: 1}]", strict, Fail, "has no field o.y"},
		"a step that is mapped":    {"transform: [{op: increment, path: /o/x, value: 1}]", strict, OK, ""},
		"a step in what is free":   {"transform: [{op: now, path: /free/at}]", strict, OK, ""},
		"a step in what is a text": {"transform: [{op: now, path: /_w/at/x}]", strict, Fail, "transform: _w is mapped as keyword, and has no field _w.at.x"},
		"a step in anything":       {"transform: [{op: now, path: /any/at}]", strict, OK, ""},
		"a step in what is flat":   {"transform: [{op: now, path: /flat/at}]", strict, OK, ""},
		"a step in a list":         {"transform: [{op: append, path: /n, value: 1}]", strict, OK, ""},
		"a step for a while":       {"transform: [{op: now, path: /at}, {op: remove, path: /at}]", strict, OK, ""},
		"a step with a condition":  {`transform: [{op: now, path: /at, when: "incoming.n > 1"}]`, strict, OK, ""},
		"a step that may not come": {"transform: [{op: add, path: /at, value: {from: incoming, path: /n}}]", strict, OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ru := "rules: [{name: shop, match: {index: [shop]}"
			if c.rule != "" {
				ru += ", " + c.rule
			}
			r := examine(t, ru+"}]", false, with(canned{"GET /_all": {Status: 200, Body: `{"shop":{` + c.index + `}}`}}))
			switch {
			case c.level == OK && len(r.Indices) > 0:
				t.Errorf("%+v", r.Indices)
			case c.level != OK && (len(r.Indices) != 1 || r.Indices[0].Level != c.level || !strings.Contains(r.Indices[0].Why, c.why)):
				t.Errorf("%+v, want %s: %s", r.Indices, c.level, c.why)
			case r.Failed() != (c.level == Fail):
				t.Errorf("the verdict is %s", r.verdict())
			}
		})
	}
}

// Clusters have old indices that are closed to writes. The built-in rule takes them, too.
func TestABlockedIndexThatNoRuleNamesIsAWarning(t *testing.T) {
	r := examine(t, "", false, with(canned{"GET /_all": {Status: 200, Body: `{"old":{"settings":{"index":{"blocks":{"write":"true"}}}}}`}}))
	if r.Failed() || len(r.Indices) != 1 || r.Indices[0].Level != Warn {
		t.Errorf("%+v", r.Indices)
	}
}
