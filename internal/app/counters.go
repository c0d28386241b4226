package app

import (
	"optimist/internal/deadletter"
	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/proxy"
)

// startCounters has counters with few and known labels shown from the start, with 0. Alerts ask by how much a counter has grown. If a
// counter only appears with its first event, alerts don't see this event.
func startCounters(m *obs.Metrics) {
	for _, kind := range outcome.Kinds() {
		m.Start(obs.MetricOutcomes, kind, "")
	}
	for _, reason := range session.Reasons() {
		m.Start(obs.MetricLostBases, reason)
	}
	for _, t := range proxy.Types() {
		m.Start(obs.MetricFailures, t)
	}
	for _, reason := range letterReasons {
		for _, place := range deadletter.Places() {
			m.Start(obs.MetricLettersKept, reason, place)
		}
	}
}
