package session

// Distance is how far a document that was sent is from one that a client had seen.
type Distance struct {
	// Edits is the number of edits between the two; elements of arrays count one by one.
	Edits int
	// Less reports whether, at the same number of edits, the distance is smaller than o's: by the total change of
	// numbers. It may be nil.
	Less func(o Distance) bool
	// Detail is what Less compares with.
	Detail any
}

// Measure returns the distance from base to sent. base is nil for a document that was absent. It is called without any
// lock held and only where there is more than one candidate. A base that can't be measured is taken after those that can.
type Measure func(base, sent []byte) (Distance, error)
