package watch

import (
	"bytes"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/rule"
	"optimist/internal/uri"
)

// searchPlan is what is done with a search.
type searchPlan struct {
	requestBody
	target rule.Target
	// watches has its hits remembered, stamps has them stamped.
	watches, stamps bool
	// The client asks itself for the numbers, or for the version.
	numbered, versioned bool
	size                int64 // how many hits it asks for
}

// defaultSize is how many hits a search has that doesn't say.
const defaultSize = 10

// judge decides how the hits of a search are handled, by the search's request.
func (f *searchPlan) judge(text []byte) {
	if n := gjson.GetBytes(text, "size"); n.Exists() {
		f.size = n.Int()
	}
	whole := wholeHits(text)
	f.watches, f.stamps = f.watches && whole, f.stamps && whole
	f.numbered = f.numbered || bytes.Contains(text, []byte("seq_no_primary_term"))
	f.versioned = f.versioned || bytes.Contains(text, []byte(`"version"`)) || bytes.IndexByte(text, '\\') >= 0
}

// judgeQuery does the same by the query, which is stronger.
func (f *searchPlan) judgeQuery(query []byte) {
	_, numbered := uri.Param(query, "seq_no_primary_term")
	_, versioned := uri.Param(query, "version")
	f.numbered, f.versioned = f.numbered || numbered, f.versioned || versioned
	if v, given := uri.Param(query, "size"); given {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if f.size = n; err != nil {
			f.size = math.MaxInt64 // whatever it is
		}
	}
}
