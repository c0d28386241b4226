package tree

import "testing"

func TestPartOfSecond(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-01-02T03:04:05.678Z"`:        "678",
		`"2026-01-02 03:04:05.678901"`:      "678901",
		`"2026-01-02T03:04:05.6+01:00"`:     "6",
		`"2026-01-02T03:04:05.678901-0800"`: "678901",
		`"2026-01-02T03:04:05Z"`:            "",
		`"2026-01-02T03:04:05."`:            "",
		`"2026-01-02"`:                      "",
		`"2026/01/02T03:04:05.678Z"`:        "",
		`"version 2026-01-02T03:04:05.678"`: "",
		`1700000000.678`:                    "",
		`["2026-01-02T03:04:05.678Z"]`:      "",
	} {
		var tr Tree
		if err := tr.ParseObject([]byte(`{"t":`+text+`}`), Limits{}); err != nil {
			t.Fatal(err)
		}
		if got := string(tr.Root().First().PartOfSecond()); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
