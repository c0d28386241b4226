package rank

import (
	"math"
	"slices"
)

// vocabulary is which values a place has had. A state, or the person in charge, is one of few words. If two clients set the same word,
// that says little, however long the word is.
type vocabulary struct {
	words []uint64
	sets  int // how often the place was set to another value
}

const (
	// maxWords is how many values a vocabulary has at most. A place with more values has free text.
	maxWords = 16
	// minRepeats is how often values have to return before they count as a vocabulary.
	minRepeats = 2
)

// learn reads the values of a place, in one revision after the other. i is where the member is likely to be found. Views are left out: a
// view is one client's copy, so old values return in it although no client has set them again.
func (v *vocabulary) learn(cs []Candidate, i int, place uint64) {
	v.words, v.sets = v.words[:0], 0
	last := uint64(0)
	for k := range cs {
		if cs[k].View || cs[k].Digest == nil {
			continue
		}
		m := cs[k].Digest.member(i, place)
		if m == nil || v.sets > 0 && m.value == last {
			continue
		}
		v.sets++
		if last = m.value; !slices.Contains(v.words, last) {
			v.words = append(v.words, last)
		}
	}
}

// weight returns how much it says that two clients write the same word, in bits. ok is false if there is no vocabulary.
func (v *vocabulary) weight() (weight uint8, ok bool) {
	repeats := v.sets - len(v.words)
	if repeats < minRepeats || len(v.words) > maxWords {
		return 0, false
	}
	bits := math.Log2(float64(v.sets)/float64(repeats)) + math.Log2(float64(len(v.words)))
	return uint8(math.Ceil(bits)), true
}
