package timer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryCallsOnceInItsTimeUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			Every(ctx, time.Minute, func(context.Context) { done++ })
		}()
		const hours = 100
		time.Sleep(hours * time.Hour)
		cancel()
		<-ended
		if least, most := hours*60*2/3, hours*60*2; done < least || done > most {
			t.Errorf("done %d times in %d hours", done, hours)
		}
	})
}
