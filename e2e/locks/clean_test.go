package locks_test

import (
	"fmt"
	"testing"

	"optimist/e2e/engine"
	"optimist/lockrouter"
	lockengine "optimist/lockrouter/engine"
	"optimist/lockrouter/state"
)

func TestIdleLocksAreCleanedUpAndTokensStillGrow(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		for name, scripts := range map[string]lockengine.Scripts{"auto": lockengine.Auto, "guarded": lockengine.Never} {
			t.Run(name, func(t *testing.T) {
				s := store(t, e, e.Index(t), scripts)
				scenes := map[string]*scene{}
				tokens := map[string]int64{}
				for _, id := range []string{"idle", "held", "waited for"} {
					sc := &scene{t: t, proxies: []lockrouter.Store{s}, id: id}
					scenes[id], tokens[id] = sc, sc.expect(sc.do(0, sc.acquire("a", 60_000)), state.Acquired)
				}
				scenes["idle"].expect(scenes["idle"].do(0, release("a", tokens["idle"])), state.Released)
				w := scenes["waited for"]
				w.expect(w.do(0, w.wait("b", state.Foreground)), state.Queued)
				w.expect(w.do(0, release("a", tokens["waited for"])), state.Released)
				if n, err := s.Clean(t.Context(), lockengine.KeepAge); err != nil || n != 0 {
					t.Errorf("%d were removed whose tokens are new, %v", n, err)
				}
				w.over(5)
				if n, err := s.Clean(t.Context(), 0); err != nil || n != 1 {
					t.Errorf("%d were removed, %v", n, err)
				}
				docs, err := s.Read(t.Context(), []string{"idle", "held", "waited for"})
				if err != nil || docs[0] != nil || docs[1] == nil || docs[2] == nil {
					t.Errorf("%v %v", docs, err)
				}
				for id, sc := range scenes {
					if id == "held" {
						continue
					}
					op := sc.wait("b", state.Foreground)
					if next := sc.expect(sc.do(0, op), state.Acquired); next <= tokens[id] {
						t.Errorf("%s: token %d after %d", fmt.Sprint(id), next, tokens[id])
					}
				}
			})
		}
	})
}
