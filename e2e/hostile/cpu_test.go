package hostile

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"optimist/e2e/hostile/attacks"
)

// The processor time that a request of attackSize bytes may cost before anybody knows who sent it. It is counted by the kernel, for this process
// alone; what it is counted in takes attackTimes requests to be seen. On a busy machine the same work takes more of it, so that what is
// too much is measured again: the least of attackTries counts.
const (
	attackSize  = 16 << 10
	attackTimes = 10
	attackTries = 3
	mostTime    = 100 * time.Millisecond
)

func TestNoRequestBeforeAuthenticationTakesTheProcessor(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"type":"security_exception"},"status":401}`))
	}))
	t.Cleanup(refusing.Close)
	g := startAt(t, refusing.URL, attacks.Config)
	worst, name := time.Duration(0), ""
	for _, attack := range attacks.All() {
		request := attack.Request(attackSize)
		took := g.cpuOf(t, request)
		for try := 1; took > mostTime && try < attackTries; try++ {
			took = min(took, g.cpuOf(t, request))
		}
		if took > mostTime {
			t.Errorf("%s: %v of processor time for a request of %d bytes", attack.Name, took, len(request))
		}
		if took > worst {
			worst, name = took, attack.Name
		}
	}
	t.Logf("%d forms; the dearest is %q: %v", len(attacks.All()), name, worst)
}

// cpuOf is the processor time that a request takes.
func (g *target) cpuOf(t *testing.T, request []byte) time.Duration {
	t.Helper()
	before := g.cpu(t)
	for range attackTimes {
		g.exchange(request)
	}
	return (g.cpu(t) - before) / attackTimes
}
