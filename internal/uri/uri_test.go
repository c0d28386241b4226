package uri

import (
	"errors"
	"slices"
	"testing"
)

func TestQueryParametersKeepTheirBytes(t *testing.T) {
	q := []byte("refresh=wait_for&if_seq_no=3&routing=a%2Bb&if_primary_term=1;x")
	if v, ok := Param(q, "routing"); !ok || string(v) != "a%2Bb" {
		t.Errorf("routing: %q %v", v, ok)
	}
	if v, ok := Param(q, "x"); !ok || len(v) != 0 {
		t.Errorf("a parameter without a value: %q %v", v, ok)
	}
	if got := string(Without(nil, q, "if_seq_no", "if_primary_term")); got != "refresh=wait_for&routing=a%2Bb&x" {
		t.Errorf("Without: %q", got)
	}
	if got := string(Only(nil, q, "routing", "x", "y")); got != "routing=a%2Bb&x" {
		t.Errorf("Only: %q", got)
	}
}

func TestPlusIsASpaceInQueriesOnly(t *testing.T) {
	if got, err := Decode(nil, []byte("a+b%2Bc%20")); err != nil || string(got) != "a+b+c " {
		t.Errorf("segment: %q %v", got, err)
	}
	if got, err := DecodeValue(nil, []byte("a+b%2Bc")); err != nil || string(got) != "a b+c" {
		t.Errorf("value: %q %v", got, err)
	}
	for _, bad := range []string{"%", "%2", "%zz", "a%2"} {
		if _, err := Decode(nil, []byte(bad)); err == nil {
			t.Errorf("%q was decoded", bad)
		}
	}
	if got := string(AppendSegment(nil, "a/b c#ü")); got != "a%2Fb%20c%23%C3%BC" {
		t.Errorf("AppendSegment: %q", got)
	}
}

// TestBytesThatShouldHaveBeenEncodedAreReadAsTheEnginesDo has names in UTF-8 that clients didn't encode.
func TestBytesThatShouldHaveBeenEncodedAreReadAsTheEnginesDo(t *testing.T) {
	for _, c := range []struct{ raw, segment, value string }{
		{"ü", "Ã¼", "Ã¼"},
		{"\xfc", "ü", "ü"},
		{"%C3%BC", "ü", "ü"},
		{"%20ü", " ü", " ü"},
		{"a+ü", "a+Ã¼", "a ü"},
		{"€", "â\u0082¬", "â\u0082¬"},
	} {
		if got, err := Decode(nil, []byte(c.raw)); err != nil || string(got) != c.segment {
			t.Errorf("segment %q: %q %v, want %q", c.raw, got, err, c.segment)
		}
		if got, err := DecodeValue(nil, []byte(c.raw)); err != nil || string(got) != c.value {
			t.Errorf("value %q: %q %v, want %q", c.raw, got, err, c.value)
		}
	}
	if got, err := Unescape(nil, []byte("ü")); err != nil || string(got) != "ü" {
		t.Errorf("a name of our own: %q %v", got, err)
	}
	if got, err := UnescapeValue(nil, []byte("ü+")); err != nil || string(got) != "ü " {
		t.Errorf("a value of our own: %q %v", got, err)
	}
}

func TestTwoPercentSignsAreOne(t *testing.T) {
	for raw, want := range map[string]string{"50%%": "50%", "%%41": "%41", "%%%41": "%A", "a%%%%b": "a%%b"} {
		if got, err := Decode(nil, []byte(raw)); err != nil || string(got) != want {
			t.Errorf("segment %q: %q %v, want %q", raw, got, err, want)
		}
		if got, err := DecodeValue(nil, []byte(raw)); err != nil || string(got) != want {
			t.Errorf("value %q: %q %v, want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"%", "%%%", "a%4", "%%%4", "%4%"} {
		if _, err := Decode(nil, []byte(raw)); !errors.As(err, new(*EscapeError)) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestEqualSignsBeforeANameAreNoPartOfIt(t *testing.T) {
	for query, want := range map[string]string{"=routing=a": "a", "x=1&==routing=a=b": "a=b", "=routing": "", "routing==a": "=a"} {
		if v, ok := Param([]byte(query), "routing"); !ok || string(v) != want {
			t.Errorf("%s: %q %v", query, v, ok)
		}
		if rest := Without(nil, []byte(query), "routing", "x"); len(rest) != 0 {
			t.Errorf("%s: %q is left", query, rest)
		}
	}
}

// The reasons are those of Elasticsearch and OpenSearch, word by word.
func TestMalformedEscapesAreErrorsInTheEnginesWords(t *testing.T) {
	for query, want := range map[string]string{
		"a=b&ttl=%zz": "invalid escape sequence `%zz' at index 0 of: %zz",
		"%zz=1":       "invalid escape sequence `%zz' at index 0 of: %zz",
		"ttl=%4%":     "invalid escape sequence `%4%' at index 0 of: %4%",
		"ttl=a%4":     "partial escape sequence at end of string: a%4",
		"ttl=1%;b=c":  "unterminated escape sequence at end of string: 1%",
	} {
		for name, decode := range map[string]func(dst, raw []byte) ([]byte, error){"value": DecodeValue, "own": UnescapeValue} {
			if pairs, err := Pairs([]byte(query), decode); err == nil || err.Error() != want || !errors.As(err, new(*EscapeError)) {
				t.Errorf("%s %s: %q, %v", name, query, pairs, err)
			}
		}
	}
}

func TestPairsAreDecodedInTheirOrder(t *testing.T) {
	got, err := Pairs([]byte("&b=%2B+1;;=a=x=y&b&"), DecodeValue)
	if want := []Pair{{"b", "+ 1"}, {"a", "x=y"}, {"b", ""}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Pairs(nil, DecodeValue); len(got) > 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
