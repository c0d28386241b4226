package watch

import (
	"strconv"
	"testing"
)

func TestManyScrollsOfOneNetworkHaveNoneOfAnotherForgotten(t *testing.T) {
	s, more := newScrolls(), added{numbers: true}
	s.add(1, "honest", more)
	for i := range 3 * maxScrolls {
		s.add(2, strconv.Itoa(i), added{version: true})
	}
	if got, known := s.get([]byte("honest")); got != more || !known {
		t.Errorf("%+v, known %v", got, known)
	}
	if _, known := s.get([]byte("0")); known {
		t.Error("all are known")
	}
}
