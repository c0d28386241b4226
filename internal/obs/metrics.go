package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// maxIndexLabels is how many index names stand in metrics by name.
const maxIndexLabels = 200

// Build tells which program this is.
type Build struct{ Version, Revision, Go string }

// Metrics are optimist's metrics on a registry of their own. Strings that become labels must come from a closed set (names of
// kinds, outcomes, reasons, rules), but for indices, which are capped here. All methods may be called by anybody at any
// time, and on a nil *Metrics do nothing, so that tests need none.
type Metrics struct {
	registry *prometheus.Registry
	indices  *IndexLabels

	requests, outcomes, bases, lostBases, fetches       *prometheus.CounterVec
	conflicts, retries, merges, overwritten, strategies *prometheus.CounterVec
	untransformed, unstamped                            *prometheus.CounterVec
	observed, lostUpdates, unguardable, reloads         *prometheus.CounterVec
	failures, dials, ejections, waits                   *prometheus.CounterVec
	ambiguous, received, sent, resent                   prometheus.Counter
	writes                                              *prometheus.HistogramVec
	batched                                             prometheus.Histogram
	lockRequests, lockContended, leasesLapsed           *prometheus.CounterVec
	lockWait                                            *prometheus.HistogramVec
	mode                                                *prometheus.GaugeVec
	reloadOK, reloadTime                                prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, with those of the Go runtime and the process.
func NewMetrics(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), indices: NewIndexLabels(maxIndexLabels)}
	m.countDoor()
	m.countWrites()
	m.countUpstream()
	m.countLocks()
	m.tellState(b)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) countDoor() {
	m.requests = m.counters(MetricRequests, "Requests on the data port, by operation and class of status.", LabelOp, LabelCode)
	m.failures = m.counters(MetricFailures, "Errors that optimist itself answered: refusals and failures upstream, by error.type.", LabelType)
	m.received = m.counter(MetricReceived, "Bytes of bodies that came from clients.")
	m.sent = m.counter(MetricSent, "Bytes of bodies that went to clients.")
	m.reloads = m.counters(MetricReloads, "Reloads of the configuration, by result.", LabelResult)
}

func (m *Metrics) countWrites() {
	m.outcomes = m.counters(MetricOutcomes, "Writes by outcome, as in the Optimist-Outcome header, and reason.", LabelOutcome, LabelReason)
	m.bases = m.counters(MetricBases, "Writes by the kind of base that was found for them.", LabelKind)
	m.lostBases = m.counters(MetricLostBases, "Writes whose base was known once and isn't any more, by reason.", LabelReason)
	m.ambiguous = m.counter(MetricAmbiguous, "Writes for which several reads could have been the base.")
	m.conflicts = m.counters(MetricConflicts, "Version conflicts (409) that the engine answered to guarded writes, by rule.", LabelRule)
	m.retries = m.counters(MetricRetries, "Attempts after the first, by rule.", LabelRule)
	m.fetches = m.counters(MetricFetches, "Documents fetched for a merge, by rule.", LabelRule)
	m.merges = m.counters(MetricMerges, "Writes acknowledged after a merge with another client's change, by rule.", LabelRule)
	m.overwritten = m.counters(MetricOverwritten, "Values of other clients that a merge overwrote, by rule.", LabelRule)
	m.strategies = m.counters(MetricUnmerged,
		"Native _update requests under a rule with merge strategies, which the engine's own merge doesn't follow, by rule.", LabelRule)
	m.untransformed = m.counters(MetricUntransformed,
		"Writes under a rule with a transform, to which it could not be applied, by rule. A bulk or by-query request counts once.", LabelRule)
	m.unstamped = m.counters(MetricUnstamped,
		"Reads of whole documents that a rule stamps and that got no stamp, by reason.", LabelReason)
	m.observed = m.counters(MetricObserved, "Writes seen in observe mode, by what guarding would have done.", LabelWould)
	m.lostUpdates = m.counters(MetricLostUpdates, "Writes in observe mode that erased another update, by index.", LabelIndex)
	m.unguardable = m.counters(MetricUnguardable, "Indices found that cannot be guarded or merged, by reason.", LabelReason)
	m.writes = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: MetricWriteDuration,
		Help:    "Time from a write's arrival to its answer, by operation.",
		Buckets: prometheus.ExponentialBucketsRange(0.0005, 30, 14)}, []string{LabelOp})
	m.batched = prometheus.NewHistogram(prometheus.HistogramOpts{Name: MetricBatched,
		Help: "Changes that one guarded write carried.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64}})
	m.registry.MustRegister(m.writes, m.batched)
}

func (m *Metrics) countUpstream() {
	m.dials = m.counters(MetricUpstreamDials, "Connections to a node that could not be made, by reason.", LabelNode, LabelReason)
	m.ejections = m.counters(MetricUpstreamEject, "Times that a node was left out because it failed.", LabelNode)
	m.waits = m.counters(MetricUpstreamWaits, "Requests that waited because all connections to a node were in use.", LabelNode)
	m.resent = m.counter(MetricUpstreamResent, "Requests sent again, because nothing of them had been sent or because they may be repeated.")
}

func (m *Metrics) tellState(b Build) {
	m.mode = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricMode, Help: "1 for the current mode."}, []string{LabelMode})
	m.reloadOK = prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricReloadOK, Help: "1 if the last reload worked."})
	m.reloadTime = prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricReloadTimestamp, Help: "When the current configuration was loaded."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBuildInfo, Help: "1, with the program's version as labels.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go}})
	build.Set(1)
	m.registry.MustRegister(m.mode, m.reloadOK, m.reloadTime, build)
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

// Gatherer is what the admin listener serves.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Request counts a request that was answered with a status (0: the client was gone before one), and its bodies' bytes.
func (m *Metrics) Request(op string, status int, received, sent int64) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(op, class(status)).Inc()
	m.received.Add(float64(max(received, 0)))
	m.sent.Add(float64(max(sent, 0)))
}

// Failed counts an error that optimist itself answered, by its error.type.
func (m *Metrics) Failed(errorType string) {
	if m != nil {
		m.failures.WithLabelValues(errorType).Inc()
	}
}

// class is a status as a label: five values instead of hundreds.
func class(status int) string {
	switch {
	case status < 100 || status > 599:
		return "none"
	case status < 200:
		return "1xx"
	case status < 300:
		return "2xx"
	case status < 400:
		return "3xx"
	case status < 500:
		return "4xx"
	}
	return "5xx"
}

// Outcome counts a write by what became of it.
func (m *Metrics) Outcome(outcome, reason string) {
	if m != nil {
		m.outcomes.WithLabelValues(outcome, reason).Inc()
	}
}

// WriteTook counts the time of a write that a rule took.
func (m *Metrics) WriteTook(op string, took time.Duration) {
	if m != nil {
		m.writes.WithLabelValues(op).Observe(took.Seconds())
	}
}

// Base counts the base that a write was given: its kind, and whether others could have been it.
func (m *Metrics) Base(kind string, ambiguous bool) {
	if m == nil {
		return
	}
	m.bases.WithLabelValues(kind).Inc()
	if ambiguous {
		m.ambiguous.Inc()
	}
}

// LostBase counts a write whose base was gone.
func (m *Metrics) LostBase(reason string) {
	if m != nil {
		m.lostBases.WithLabelValues(reason).Inc()
	}
}

// Conflict counts a 409 of the engine to a guarded write.
func (m *Metrics) Conflict(rule string) {
	if m != nil {
		m.conflicts.WithLabelValues(rule).Inc()
	}
}

// Retried counts a write's attempts after the first.
func (m *Metrics) Retried(rule string, attempts int) {
	if m != nil && attempts > 0 {
		m.retries.WithLabelValues(rule).Add(float64(attempts))
	}
}

// Fetched counts a document that was fetched for a merge.
func (m *Metrics) Fetched(rule string) {
	if m != nil {
		m.fetches.WithLabelValues(rule).Inc()
	}
}

// Batched counts a guarded write by the changes that it carried.
func (m *Metrics) Batched(changes int) {
	if m != nil {
		m.batched.Observe(float64(changes))
	}
}

// Merged counts a write that was acknowledged after a merge, and the values of somebody else's that it overwrote.
func (m *Metrics) Merged(rule string, overwritten int) {
	if m == nil {
		return
	}
	m.merges.WithLabelValues(rule).Inc()
	if overwritten > 0 {
		m.overwritten.WithLabelValues(rule).Add(float64(overwritten))
	}
}

// StrategiesUnused counts a native _update under a rule with merge strategies.
func (m *Metrics) StrategiesUnused(rule string) {
	if m != nil {
		m.strategies.WithLabelValues(rule).Inc()
	}
}

// Unstamped counts a read of something that should have had a stamp, and has none.
func (m *Metrics) Unstamped(reason string) {
	if m != nil {
		m.unstamped.WithLabelValues(reason).Inc()
	}
}

// Untransformed counts a write to which its rule's transform was not applied.
func (m *Metrics) Untransformed(rule string) {
	if m != nil {
		m.untransformed.WithLabelValues(rule).Inc()
	}
}

// Observed counts a write in observe mode by what guarding would have done with it, and, if it erased another update, the
// index where that happened.
func (m *Metrics) Observed(would, index string, lost bool) {
	if m == nil {
		return
	}
	m.observed.WithLabelValues(would).Inc()
	if lost {
		m.lostUpdates.WithLabelValues(m.indices.Label(index)).Inc()
	}
}

// Unguardable counts an index that was found not to be guardable.
func (m *Metrics) Unguardable(reason string) {
	if m != nil {
		m.unguardable.WithLabelValues(reason).Inc()
	}
}

// Mode sets the mode in force, one of all.
func (m *Metrics) Mode(now string, all ...string) {
	if m == nil {
		return
	}
	for _, mode := range all {
		m.mode.WithLabelValues(mode).Set(b2f(mode == now))
	}
}

// Reloaded counts a reload of the configuration.
func (m *Metrics) Reloaded(ok bool, at time.Time) {
	if m == nil {
		return
	}
	m.reloadOK.Set(b2f(ok))
	if !ok {
		m.reloads.WithLabelValues("failure").Inc()
		return
	}
	m.reloads.WithLabelValues("success").Inc()
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
