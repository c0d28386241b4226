package merge

import (
	"fmt"
	"strings"
)

// A Strategy decides what a merge does with a value that both sides changed. It has no say about a value that only one side changed.
type Strategy uint8

const (
	// Sent takes the client's value and names the path in Result.Overwritten. It is the default.
	Sent Strategy = iota
	// Current keeps what the document has.
	Current
	// Fail ends the merge with a ConflictError, also where both sides made the same change.
	Fail
	// Sum adds the client's difference to the current number: both deltas count, also where both are the same.
	Sum
	// Max keeps the larger of two numbers, or of two strings by their bytes (ISO dates).
	Max
	// Min keeps the smaller of two numbers, or of two strings by their bytes.
	Min
	// Union merges arrays as sets.
	Union
	// Append puts what the client inserted, wherever it did, at the end of the current array.
	Append
	// ByKey merges arrays of objects element by element; PathRule.Key names the field that identifies an element.
	ByKey
)

var strategyNames = [...]string{"sent", "current", "fail", "sum", "max", "min", "union", "append", "by_key"}

// String returns the name that configuration uses.
func (s Strategy) String() string {
	if int(s) < len(strategyNames) {
		return strategyNames[s]
	}
	return fmt.Sprintf("strategy(%d)", uint8(s))
}

// ParseStrategy is the inverse of String. The error names what would have been right.
func ParseStrategy(name string) (Strategy, error) {
	for i, n := range strategyNames {
		if n == name {
			return Strategy(i), nil
		}
	}
	return Sent, fmt.Errorf("unknown merge strategy %q: one of %s", name, strings.Join(strategyNames[:], ", "))
}

// calculates reports whether the strategy makes a value of its own from both sides' values.
func (s Strategy) calculates() bool { return s >= Sum && s <= Min }

// anyValue reports whether s makes sense for a value of any kind. Such a strategy holds for everything below its path,
// too, where no other rule says otherwise.
func (s Strategy) anyValue() bool { return s <= Fail }

// A PathRule is the strategy for the values at one path.
type PathRule struct {
	// Path is a JSON Pointer (RFC 6901) in which `*` as a whole token stands for every key or every element. A key that is
	// literally `*` can't be named. Where several rules match a value, the one with a literal token at the first token
	// in which they differ wins; their order does not matter.
	Path string
	// Strategy for the value at Path. Sent, Current and Fail hold for everything below, too.
	Strategy Strategy
	// Key is the field by which ByKey tells elements apart; empty for all others. A plain field name, no pointer.
	Key string
}

// A Verdict is what a merge made of one value.
type Verdict uint8

// The verdicts.
const (
	Kept        Verdict = iota // current's: only somebody else changed it, or the strategy says so
	Taken                      // the client's: only it changed it
	Agreed                     // both made it the same
	Overwritten                // the client's, by strategy Sent; somebody else's value is gone
	Conflict                   // nobody's: the merge failed
	Calculated                 // by Sum, Max or Min
	Combined                   // an array with the edits of both, one by one or by Union, Append or ByKey
)

var verdictNames = [...]string{"kept", "taken", "same", "overwritten", "conflict", "calculated", "combined"}

// String is the verdict in a word.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}
