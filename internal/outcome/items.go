package outcome

import "strconv"

// Items is the account of several writes that had one request. The zero value is of none.
type Items struct {
	all                                           int
	kinds                                         [len(kinds)]int
	ambiguous, overwrote, untransformed, tooLarge int
}

// Add adds the outcome of one of them.
func (s *Items) Add(o *Outcome) {
	s.all++
	s.kinds[o.Kind]++
	if o.Ambiguous {
		s.ambiguous++
	}
	if len(o.Overwrote) > 0 {
		s.overwrote++
	}
	if o.Untransformed {
		s.untransformed++
	}
	if o.Reason == ReasonTooLarge {
		s.tooLarge++
	}
}

// mostTelling are the kinds in the order in which one of them speaks for all: what somebody may have to look after comes first.
var mostTelling = [...]Kind{Unknown, DeadLetter, NotSent, Refused, Combined, Merged, Guarded, Retried, Passed}

// Append appends the account as a structured field: the kind that tells most, and how many items there are of each.
func (s *Items) Append(dst []byte) []byte {
	for _, k := range mostTelling {
		if s.kinds[k] > 0 {
			dst = append(dst, k.String()...)
			break
		}
	}
	count := func(name string, n int) {
		dst = append(append(append(dst, ';'), name...), '=')
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	count("items", s.all)
	for k, n := range s.kinds {
		if n > 0 {
			count(kinds[k], n)
		}
	}
	for _, c := range [...]struct {
		name string
		n    int
	}{{"ambiguous", s.ambiguous}, {"overwrote", s.overwrote}, {"untransformed", s.untransformed}, {ReasonTooLarge, s.tooLarge}} {
		if c.n > 0 {
			count(c.name, c.n)
		}
	}
	return dst
}
