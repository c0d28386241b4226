package choice_test

import (
	"fmt"
	"strings"
	"testing"

	"optimist/internal/choice"
	"optimist/internal/doc"
)

func TestWhatTakesBackWhatANewerRevisionHas(t *testing.T) {
	for _, c := range []struct {
		older, newer, sent string
		undoes             bool
	}{
		{`{"l":[]}`, `{"l":["a"]}`, `{"l":["b"]}`, true},
		{`{"l":[]}`, `{"l":["a"]}`, `{"l":["a","b"]}`, false},
		{`{"l":["a"]}`, `{"l":["a","a"]}`, `{"l":["a","b"]}`, true},
		{`{"l":["a"]}`, `{"l":[]}`, `{"l":["a","b"]}`, true},
		{`{"l":["a"]}`, `{"l":[]}`, `{"l":["b"]}`, false},
		{`{"s":"a"}`, `{"s":"b"}`, `{"s":"a","t":1}`, true},
		{`{"s":"a"}`, `{"s":"b"}`, `{"s":"b","t":1}`, false},
		{`{"s":"a"}`, `{"s":"b"}`, `{"s":"c"}`, false}, // from either
		{`{"n":5}`, `{"n":6}`, `{"n":7}`, false},       // as a counter
		{`{}`, `{"o":{"s":"a"}}`, `{"t":1}`, true},
		{`{}`, `{"o":{"s":"a"}}`, `{"o":{"s":"b"},"t":1}`, false},
		{`{"s":"a"}`, `{}`, `{"s":"a"}`, true},
		{`{"s":"a"}`, `{}`, `{"t":1}`, false},
		{`{"s":"a"}`, `{"s":"a"}`, `{}`, false},
		{`{"s":"a"}`, `{"s":"b"}`, `no JSON`, false},
	} {
		s := choice.NewSince(doc.Revision{Source: []byte(c.newer)}, doc.Revision{Source: []byte(c.older)})
		if got := s.IsUndoneBy([]byte(c.sent)); got != c.undoes {
			t.Errorf("%s, then %s, and sent is %s: %v", c.older, c.newer, c.sent, got)
		}
	}
}

// TestALargeDifferenceIsKeptInPart: each part of it tells the two apart.
func TestALargeDifferenceIsKeptInPart(t *testing.T) {
	var all []string
	for n := range 100 {
		all = append(all, fmt.Sprintf(`%d`, n))
	}
	list := func(some []string) doc.Revision {
		return doc.Revision{Source: fmt.Appendf(nil, `{"l":[%s]}`, strings.Join(some, ","))}
	}
	s := choice.NewSince(list(all), list(nil))
	if s.IsUndoneBy(list(all).Source) || !s.IsUndoneBy(list(nil).Source) {
		t.Error("the newer one undoes it, or the older one doesn't")
	}
}

func TestWhatCantBeComparedShowsNothing(t *testing.T) {
	large := fmt.Appendf(nil, `{"s":%q}`, strings.Repeat("x", 1<<20))
	for _, c := range [][2][]byte{{nil, []byte(`{}`)}, {[]byte(`{}`), nil}, {[]byte(`{`), []byte(`{}`)}, {large, []byte(`{}`)}} {
		s := choice.NewSince(doc.Revision{Source: c[0]}, doc.Revision{Source: c[1]})
		if s != nil || s.IsUndoneBy([]byte(`{}`)) {
			t.Errorf("%.20s and %.20s", c[0], c[1])
		}
	}
}
