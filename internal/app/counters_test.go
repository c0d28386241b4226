package app

import (
	"testing"

	"optimist/internal/obs"
	"optimist/internal/session"
)

// TestEveryReasonIsCountedFromTheStart: a counter that only appears with its first event hides this event from alerts.
func TestEveryReasonIsCountedFromTheStart(t *testing.T) {
	m := obs.NewMetrics(obs.Build{})
	startCounters(m)
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, f := range families {
		if f.GetName() == obs.MetricLostBases {
			for _, counter := range f.GetMetric() {
				shown[counter.GetLabel()[0].GetValue()] = true
			}
		}
	}
	for r := session.ReasonEvicted; r <= session.ReasonUnwatched; r++ {
		if !shown[r.String()] {
			t.Errorf("%s isn't shown", r)
		}
	}
}
