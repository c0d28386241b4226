package obs

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Metrics) countLocks() {
	m.lockRequests = m.counters(MetricLockRequests,
		"Requests for a lock, by class and outcome: acquired, reentered, held, timeout, full, failed, or left if the client left.",
		LabelClass, LabelOutcome)
	m.lockContended = m.counters(MetricLockContended,
		"Requests for a lock that another owner had, or for which others waited, by class.", LabelClass)
	m.leasesLapsed = m.counters(MetricLeasesLapsed,
		"Leases that ended without a release, as this optimist noticed, by whether another client took the lock over.", LabelTaken)
	m.lockWait = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: MetricLockWait,
		Help:    "Time from a request for a lock to the lease, by class.",
		Buckets: prometheus.ExponentialBucketsRange(0.001, 60, 12)}, []string{LabelClass})
	m.registry.MustRegister(m.lockWait)
}

// LockRequest counts a request for a lock that has ended, and its time if it got its lock.
func (m *Metrics) LockRequest(class, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.lockRequests.WithLabelValues(class, outcome).Inc()
	if outcome == "acquired" || outcome == "reentered" {
		m.lockWait.WithLabelValues(class).Observe(took.Seconds())
	}
}

// LockContended counts a request that met somebody else at its lock.
func (m *Metrics) LockContended(class string) {
	if m != nil {
		m.lockContended.WithLabelValues(class).Inc()
	}
}

// LeasesLapsed counts leases that ended without a release.
func (m *Metrics) LeasesLapsed(n int, taken bool) {
	if m != nil {
		m.leasesLapsed.WithLabelValues(strconv.FormatBool(taken)).Add(float64(n))
	}
}

// WatchLocks has the locks that are held and waited for read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchLocks(held func() int, waiting func(class string) int) {
	if m == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricLocksHeld,
		Help: "Leases that this optimist gave out and that still last."}, func() float64 { return float64(held()) }))
	for _, class := range []string{"foreground", "background"} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricLocksWaiting,
			Help: "Requests that wait for a lock at this optimist, by class.", ConstLabels: prometheus.Labels{LabelClass: class}},
			func() float64 { return float64(waiting(class)) }))
	}
}
