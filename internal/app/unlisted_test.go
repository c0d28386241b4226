package app

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// A gateway chooses the engine by a field that nobody has named. optimist says so, with the line that names it, and so that is the last time. The
// clients have credentials: without them, an address tells clients apart by itself.
func TestAFieldThatChoosesTheTenantIsSaidWithTheLineThatNamesIt(t *testing.T) {
	for field, value := range map[string]string{"X-Shop": "bert", "X-Forwarded-For": "192.0.2.7"} {
		t.Run(field, func(t *testing.T) {
			one, other := enginetest.Serve(t), enginetest.Serve(t)
			forward := enginetest.Forward(t, other)
			gateway := enginetest.Between(t, one, func(w http.ResponseWriter, r *http.Request) bool {
				its := strings.HasPrefix(r.Header.Get(field), value)
				if its {
					forward.ServeHTTP(w, r)
				}
				return its
			})
			enginetest.Ask(t, "PUT", one+doc1, `{"a":1}`)
			enginetest.Ask(t, "PUT", other+"/shop/_doc/2", `{}`)
			enginetest.Ask(t, "PUT", other+doc1, `{"a":2}`)
			add := "identity: {fields: [" + strings.ToLower(field) + "]}"
			for _, rules := range []string{"", add + "\n"} {
				log := &enginetest.Log{}
				c := configured(t, shopRule+rules, gateway)
				a, err := New(Options{Config: c, Rules: compiled(t, c), Settled: true, Log: slog.New(slog.NewTextHandler(log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(a.Close)
				a.Serve()
				w := &world{t: t, direct: one, proxied: a.URL(), app: a}
				for range 200 {
					for _, tenant := range []string{"anna", value} {
						w.ask(w.proxied, "GET", doc1, "", field, tenant, "X-Version", "7", "Authorization", "Basic YTpi")
					}
				}
				n, said := w.counted("optimist_unlisted_tenant_fields_total"), strings.Count(log.String(), add)
				if want := 1 - min(1, len(rules)); n != want || said != want {
					t.Errorf("with %q: counted %d, said %d times\n%s", rules, n, said, log.String())
				}
			}
		})
	}
}
