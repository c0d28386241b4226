package conformance_test

import (
	"testing"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/conformance"
	"optimist/lockrouter/memory"
)

func TestLockDocumentsInMemory(t *testing.T) {
	conformance.Run(t, "", func(t *testing.T) conformance.Store {
		s := conformance.Store{Queues: true, Documents: true, Repeats: true}
		store := memory.New(nil)
		for range 2 {
			r := lockrouter.New(lockrouter.Options{Store: store, Foreground: 20 * time.Second, Background: 20 * time.Second})
			t.Cleanup(r.Close)
			s.Proxies = append(s.Proxies, r)
		}
		return s
	})
}
