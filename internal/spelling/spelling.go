// Package spelling finds the word that was probably meant by a misspelt one.
//
// It compares bytes: words beyond ASCII count more edits than letters.
package spelling

import (
	"fmt"
	"strings"
)

// Nearest is the candidate that was probably meant by word, or "": at most a third of the letters wrong, left out, doubled or swapped;
// one more where the beginning is right, because endings are what one remembers worst. Otherwise it is the one candidate that word
// abbreviates. Upper and lower case are the same in word.
func Nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", len(word)
	for _, c := range candidates {
		allowed := max(1, len(word)/3)
		if len(c) > 3 && strings.HasPrefix(word, c[:4]) {
			allowed++
		}
		if d, near := Within(word, c, allowed); near && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return unabbreviated(word, candidates)
	}
	return best
}

// unabbreviated is the one candidate that begins with word, or "". Two letters are no abbreviation of anything.
func unabbreviated(word string, candidates []string) string {
	found := ""
	for _, c := range candidates {
		if len(word) < 3 || !strings.HasPrefix(c, word) {
			continue
		}
		if found != "" {
			return ""
		}
		found = c
	}
	return found
}

// NotOneOf is the sentence about a word that isn't one of several: what they are, and which was probably meant.
func NotOneOf(word string, choices []string) string {
	list := strings.Join(choices, ", ")
	if near := Nearest(word, choices); near != "" {
		return fmt.Sprintf("%q is not one of %s; did you mean %q?", word, list, near)
	}
	return fmt.Sprintf("%q is not one of %s", word, list)
}

// Within reports whether two words are so many edits apart at most, and how many: insertions, removals, replacements, and swaps of
// neighbours. Words whose lengths differ by more cost nothing: strangers may send very long ones.
func Within(a, b string, most int) (edits int, near bool) {
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return 0, false
	}
	edits = distance(a, b)
	return edits, edits <= most
}

// distance is the number of edits between two words (optimal string alignment).
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
