package viewcache

import (
	"testing"

	"optimist/internal/rank"
)

func TestWhatIsKnownOfACrowdFadesAndTurns(t *testing.T) {
	var c Crowd
	if !c.IsQuiet() || c.Alone() != 0 {
		t.Errorf("at first: %d", c)
	}
	c.Meet()
	writes := 0
	for ; !c.IsQuiet(); writes++ {
		c.Fade()
	}
	if writes < 8 || writes > 64 {
		t.Errorf("after %d writes that show nothing it is quiet again", writes)
	}
	for range 1000 {
		c.Fade()
	}
	if c != 0 {
		t.Errorf("what shows nothing makes nobody alone: %d", c)
	}
	for range 1000 {
		c.Lean(-rank.Bit)
	}
	if c.Alone() != 4 {
		t.Errorf("the evidence has its bounds: %d bits", c.Alone())
	}
	for range 3 { // content that leaves little doubt
		c.Lean(16 * rank.Bit)
	}
	if c.IsQuiet() || c.Alone() != 0 {
		t.Errorf("three such writes show a crowd: %d", c)
	}
}
