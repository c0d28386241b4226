package obs

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestEventsInPlentyAreToldOfNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Seldom
		if n, tell := s.Count(); n != 1 || !tell {
			t.Errorf("the first: %d, %v", n, tell)
		}
		for range 999 {
			if _, tell := s.Count(); tell {
				t.Fatal("told of again at once")
			}
		}
		time.Sleep(seldomEvery)
		if n, tell := s.Count(); n != 1000 || !tell {
			t.Errorf("later: %d, %v", n, tell)
		}
	})
}
