package lockrouter_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"optimist/internal/budget"
	"optimist/lockrouter"
)

// heap is how many bytes live on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestARequestForManyDocumentsTakesWhatItHolds: it may wait for an hour, and its client hasn't shown any credentials.
func TestARequestForManyDocumentsTakesWhatItHolds(t *testing.T) {
	for name, list := range map[string]string{
		"short ids": ids(0, 4000),
		"long ids":  strings.ReplaceAll(ids(0, 1000), `"`+"00", `"`+"00"+strings.Repeat("ü", 200)),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *shelf) {
				r := router(t, s, lockrouter.Options{})
				first := list[2:strings.Index(list, `",`)]
				if len(first) == 5 {
					ask(t, r, 201, "", "PUT", "/shop/_lock/doc/"+first, `{"owner":"other","ttl":"10h"}`)
				} else {
					ask(t, r, 201, "", "POST", docs, `{"owner":"other","ttl":"10h","ids":["`+first+`"]}`)
				}
				b := budget.New(budget.Options{Limit: 1 << 40})
				body := []byte(`{"wait":"1h","ids":` + list + `}`)
				const requests = 10
				ctx, leave := context.WithCancel(t.Context())
				before := heap()
				var wg sync.WaitGroup
				for n := range requests {
					wg.Go(func() {
						var account budget.Account
						account.Open(b, func() budget.Owner { return budget.Owner{Address: netip.MustParseAddr("192.0.2.1")} })
						defer account.End()
						_, _ = r.Serve(budget.With(ctx, &account), &lockrouter.Request{Method: "POST", Path: []byte(docs),
							Query: []byte(fmt.Sprint("owner=o", n)), Body: body})
					})
				}
				synctest.Wait()
				held, taken := heap()-before, b.Used()+requests*budget.Free
				if held > taken || taken > 4*held {
					t.Errorf("%d requests of %d bytes hold %d, and take %d", requests, len(body), held, taken)
				}
				leave()
				wg.Wait()
				if n := b.Used(); n != 0 {
					t.Errorf("%d bytes are still taken", n)
				}
			})
		})
	}
}

func TestARequestForManyDocumentsIsRefusedWithoutMemory(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		b := budget.New(budget.Options{Limit: 1 << 20})
		ctx := func() context.Context {
			account := &budget.Account{}
			account.Open(b, func() budget.Owner { return budget.Owner{} })
			return budget.With(t.Context(), account)
		}
		for body, want := range map[string]error{
			`{"owner":"a","ids":` + ids(0, 10_000) + `}`:                          budget.ErrTooMuch,
			`{"owner":"a","ids":["` + strings.Repeat(`a","`, 100_000) + `b"]}`:    budget.ErrTooMuch,
			`{"owner":"a","locks":[` + strings.Repeat(`{},`, 100_000) + `{}]}`:    budget.ErrTooMuch,
			`{"owner":"a","ids":` + ids(0, 100) + `}`:                             nil,
			`{"owner":"a","wait":"0","ids":["` + strings.Repeat("x", 512) + `"]}`: nil,
		} {
			_, err := r.Serve(ctx(), &lockrouter.Request{Method: "POST", Path: []byte(docs), Body: []byte(body)})
			if !errors.Is(err, want) {
				t.Errorf("%.60s: %v, want %v", body, err, want)
			}
		}
		if list := ask(t, r, 200, "", "GET", "/_lock?owner=a&size=1000", ""); strings.Count(list.body, `"owner":"a"`) != 101 {
			t.Errorf("%d are locked", strings.Count(list.body, `"owner":"a"`))
		}
	})
}
