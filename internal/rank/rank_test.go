package rank

import (
	"testing"

	"optimist/internal/doc"
)

// at is a revision of a document that was written once for each version.
func at(version int64, body string) doc.Revision {
	r := doc.Revision{Numbers: doc.Numbers{SeqNo: version, PrimaryTerm: 1}, Version: version}
	if body != "" {
		r.Source = []byte(body)
	}
	return r
}

func TestClosest(t *testing.T) {
	absent := doc.Revision{}
	for name, c := range map[string]struct {
		revisions []doc.Revision
		sent      string
		want      int
	}{
		"fewest edits":                    {[]doc.Revision{at(1, `{"a":1,"b":1}`), at(2, `{"a":2,"b":2}`)}, `{"a":2,"b":3}`, 1},
		"then the numbers moved least":    {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":8}`), at(3, `{"a":4}`)}, `{"a":9}`, 1},
		"then the oldest":                 {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":1}`)}, `{"a":2}`, 0},
		"elements count one by one":       {[]doc.Revision{at(1, `{"l":[1,2]}`), at(2, `{"l":[1,2,3]}`)}, `{"l":[1,2,4]}`, 0},
		"what isn't known comes last":     {[]doc.Revision{at(1, ""), at(2, `{"b":1,"c":1}`)}, `{"a":1}`, 1},
		"but before what wasn't changed":  {[]doc.Revision{at(1, ""), at(2, `{"a":1}`)}, `{"a":1}`, 0},
		"nothing changed, if all else is": {[]doc.Revision{at(1, `{"a":1,"b":1,"c":1}`), at(2, `{"a":2,"b":2,"c":2}`)}, `{"a":2,"b":2,"c":2}`, 1},
		"the same change by two":          {[]doc.Revision{at(1, `{"n":1}`), at(2, `{"n":2}`)}, `{"n":2}`, 0},
		"but not of many":                 {[]doc.Revision{at(1, `{"n":1}`), at(3, `{"n":2}`)}, `{"n":2}`, 1},
		"no document is an empty one":     {[]doc.Revision{absent, at(2, `{"a":1,"b":1,"c":1}`)}, `{"x":1}`, 0},
		"no JSON":                         {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":2}`)}, `{`, 0},
		"a delete":                        {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":2}`)}, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Closest(c.revisions, []byte(c.sent)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
