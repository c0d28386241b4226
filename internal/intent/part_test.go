package intent

import (
	"strings"
	"testing"
)

func TestAKeyThatIsThereTwiceIsFoundHoweverItIsWrittenAndWhereverItStands(t *testing.T) {
	many := strings.Repeat(`{"k":`, 500) + `{"a":1,"\u0061":2}` + strings.Repeat("}", 500)
	for body, want := range map[string]bool{
		`{}`: false, `{"a":1,"b":1}`: false, `{"a":1,"a":1}`: true, `{"a":1,"\u0061":2}`: true, `{"a":{"a":{"a":1}}}`: false,
		`{"a":[{"b":1},{"b":1}]}`: false, `{"a":[1,{"b":1,"c":[],"b":null}]}`: true, `[{"a":1,"a":1}]`: true, many: true,
		`{"a":1,"A":1}`: false, `{"":1,"":2}`: true,
	} {
		if got := HasOddKeys([]byte(body), nil); got != want {
			t.Errorf("%.60s: %v", body, got)
		}
	}
}

// Half a surrogate pair can't be named in a key. In a text it is what a program leaves that cuts an emoji in two.
func TestHalfASurrogatePairIsOddInAKeyAlone(t *testing.T) {
	for body, want := range map[string]bool{
		`{"a":"\ud83d"}`: false, `{"a":["\ude00\ud83d",{"b":"x\uDE00"}]}`: false, `{"\ud83d\ude00":1}`: false, `{"\\ud83d":1}`: false,
		`{"\ud83d":1}`: true, `{"a":[{"b":1,"x\uDE00":1}]}`: true, `{"\ude00\ud83d":1}`: true,
	} {
		if got := HasOddKeys([]byte(body), nil); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// Recursion without a bound would end the process: a goroutine's stack may have a gigabyte.
func TestWhatIsNestedWithoutEndCountsAsOddKeys(t *testing.T) {
	for _, opening := range []string{"[", `{"a":`} {
		if !HasOddKeys([]byte(strings.Repeat(opening, 10<<20)+"1"+strings.Repeat(strings.Map(closing, opening), 10<<20)), nil) {
			t.Error(opening)
		}
	}
}

func closing(r rune) rune {
	switch r {
	case '[':
		return ']'
	case '{':
		return '}'
	}
	return -1
}
