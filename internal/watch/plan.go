package watch

import (
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
	query  []byte // with which the engine is asked
	// watches has its hits remembered, stamps has them stamped.
	watches, stamps bool
	// baseless says that the rule of the only index that it names takes no bases from what clients have seen.
	baseless bool
	more     added    // what the client doesn't ask for itself
	hidden   []string // the members of hits that the engine is asked for, though its filter_path leaves them out
	size     int64    // how many hits it asks for
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
	f.more = added{numbers: !isOn(gjson.GetBytes(text, "seq_no_primary_term")), version: !isOn(gjson.GetBytes(text, "version"))}
	f.judgeQuery()
}

// isLarge reports whether the search asks for a large page.
func (f *searchPlan) isLarge() bool { return f.size > smallPage }

// showsMany reports whether the search shows many documents, at once or page by page.
func (f *searchPlan) showsMany() bool {
	_, scrolls := uri.Param(f.query, "scroll")
	return scrolls || f.isLarge()
}

// judgeForm does the same by the form in which the client wants the answer.
func (f *searchPlan) judgeForm() {
	_, pretty := uri.Param(f.query, "pretty") // hits whose bytes aren't those that are stored
	whole := f.readable && !asksForForm(f.query)
	f.watches, f.stamps = f.watches && !pretty && (whole || f.readable && f.reveal()), f.stamps && whole
}

// isOn reports whether a switch is on, as the engines read it: they take a text for it, too.
func isOn(v gjson.Result) bool { return v.Type == gjson.True || v.Str == "true" }

// judgeQuery does the same by the query, which is stronger.
func (f *searchPlan) judgeQuery() {
	for _, of := range [...]struct {
		name    string
		missing *bool
	}{{"seq_no_primary_term", &f.more.numbers}, {"version", &f.more.version}} {
		if v, given := uri.Param(f.query, of.name); given {
			v, err := uri.DecodeValue(nil, v)
			*of.missing = err != nil || len(v) > 0 && string(v) != "true"
		}
	}
	if v, given := uri.Param(f.query, "size"); given {
		n, err := strconv.ParseInt(string(v), 10, 64)
		f.size = n
		if err != nil {
			f.size = math.MaxInt64 // whatever it is
		}
	}
}
