package write

import (
	"optimist/internal/session"
	"optimist/rewrite"
)

// Measure is how far what was sent is from what clients had seen, for the choice among several bases.
func Measure() session.Measure {
	begin := func(sent []byte) (*rewrite.Measurer, error) { return rewrite.NewMeasurer(sent, rewrite.Limits{}) }
	return session.MeasureWith(begin, func(d rewrite.Distance) int { return d.Edits })
}
