package rank

import (
	"math"
	"slices"
)

// vocabulary has the values that a place has had. A state, or the person in charge, is one of few words. If two clients set the same word,
// this says little, however long the word is.
type vocabulary struct {
	words []uint64
	sets  int // how often the place was set to another value
	last  uint64
}

const (
	// maxWords is how many values a vocabulary has at most. A place with more values has free text.
	maxWords = 16
	// minRepeats is how often values have to return before they count as a vocabulary.
	minRepeats = 2
)

// learn reads the values that each revision has for mine's i-th member, in one revision after the other. Views are left out: a view is one
// client's copy, so old values return in it although no client has set them again.
func (v *vocabulary) learn(cs []Candidate, mine *digester, i int) {
	v.begin()
	for k := range cs {
		if cs[k].View || cs[k].Digest == nil {
			continue
		}
		if at := cs[k].Digest.findLike(mine, i); at.exists() {
			_, it := at.member()
			v.add(it.value)
		}
	}
}

func (v *vocabulary) begin() { v.words, v.sets = v.words[:0], 0 }

// add adds the value of the next revision.
func (v *vocabulary) add(value uint64) {
	if v.sets > 0 && value == v.last {
		return
	}
	v.sets++
	if v.last = value; !slices.Contains(v.words, value) {
		v.words = append(v.words, value)
	}
}

// weight returns how unlikely it is that two clients write the same word, in bits. ok is false if there is no vocabulary.
func (v *vocabulary) weight() (weight uint8, ok bool) {
	repeats := v.sets - len(v.words)
	if repeats < minRepeats || len(v.words) > maxWords {
		return 0, false
	}
	bits := math.Log2(float64(v.sets)/float64(repeats)) + math.Log2(float64(len(v.words)))
	return uint8(math.Ceil(bits)), true
}
