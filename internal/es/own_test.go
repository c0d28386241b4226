package es

import "testing"

func TestOwnMeta(t *testing.T) {
	for mapping, want := range map[string]string{
		`{"i-1":{"mappings":{"_meta":{"optimist":{"format":2,"clock":"engine"}}}}}`: "",
		`{"i":{"mappings":{"_meta":{"optimist":{"format":1}}}}}`:                    "",
		`{"i":{"mappings":{"_meta":{"optimist":{"format":3}}}}}`:                    "is of format 3, and this program knows up to 2",
		`{"i":{"mappings":{}}}`: "isn't a lock index: it has no format number in its _meta",
		`{}`:                    "isn't a lock index: it has no format number in its _meta",
		`[`:                     "isn't a lock index: it has no format number in its _meta",
	} {
		meta, err := OwnMeta([]byte(mapping), "a lock index", 2)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", mapping, got, want)
		}
		if clock := meta.Get("clock").Str; (clock == "engine") != (meta.Get("format").Int() == 2) {
			t.Errorf("%s: clock %q", mapping, clock)
		}
	}
}
