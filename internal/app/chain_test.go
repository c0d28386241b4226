package app

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/es"
)

// TestAnEngineThatAnswersNothingIsTold: it takes connections, as one whose process is stopped does.
func TestAnEngineThatAnswersNothingIsTold(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	log := &enginetest.Log{}
	a := runningWith(t, Options{Config: configured(t, "", engine), Settled: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a.greetOnce(ctx); !log.Contains("the engine doesn't answer; it will be tried again") {
		t.Errorf("the log says\n%s", log)
	}
}

// TestAnotherOptimistInPlaceOfTheEngineIsTold: both carry out the steps of their rules, so that a counter counts twice.
func TestAnotherOptimistInPlaceOfTheEngineIsTold(t *testing.T) {
	const counts = "rules: [{name: shop, match: {index: [shop]}, transform: [{op: increment, path: /n, value: 1}]}]\n"
	for _, mode := range []config.Mode{config.ModeGuard, config.ModeObserve, config.ModeOff} {
		t.Run(string(mode), func(t *testing.T) {
			engine := enginetest.Serve(t)
			c := configured(t, counts, engine)
			c.Mode = mode
			second := running(t, c)
			log := &enginetest.Log{}
			first := runningWith(t, Options{Config: configured(t, counts, second.URL()), Log: slog.New(slog.NewTextHandler(log, nil))})
			w := &world{t: t, direct: engine, proxied: first.URL(), app: first}
			first.greetOnce(t.Context())
			if text := log.String(); !strings.Contains(text, "the upstream is another optimist") {
				t.Errorf("the log says\n%s", text)
			}
			if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":0}`); a.Status != 201 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			want := map[config.Mode]string{config.ModeGuard: `{"n":2}`}[mode]
			if want == "" {
				want = `{"n":1}`
			}
			w.holds("/shop/_doc/1", want)
		})
	}
	engine := running(t, configured(t, "", enginetest.Serve(t)))
	if is, err := es.IsOptimist(t.Context(), engine.nodes, ""); is || err != nil {
		t.Errorf("the engine is one: %v, %v", is, err)
	}
}
