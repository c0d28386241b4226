package obs

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// maxIndexLabels is how many index names stand in metrics by name.
const maxIndexLabels = 200

// Build tells which program this is.
type Build struct{ Version, Revision, Go string }

// Counter is a metric that only grows, one for each combination of its labels' values. The zero value counts nothing.
type Counter struct{ vec *prometheus.CounterVec }

// Inc counts one.
func (c Counter) Inc(labels ...string) {
	if c.vec != nil {
		c.vec.WithLabelValues(labels...).Inc()
	}
}

// Add counts n; nothing if n is negative.
func (c Counter) Add(n int64, labels ...string) {
	if c.vec != nil && n > 0 {
		c.vec.WithLabelValues(labels...).Add(float64(n))
	}
}

// Metrics are optimist's metrics on a registry of their own. Strings that become labels must come from a closed set (names of kinds,
// outcomes, reasons, rules), but for indices, which are capped here. Goroutines may share them. The zero value counts nothing, so that
// tests need no registry.
type Metrics struct {
	// What each counts, and by which labels, is in the table of counters.
	Outcomes, LostBases, Conflicts, Retries, Fetches, StrategiesUnused, Untransformed, Unstamped, Unguardable Counter
	Marks, Keys                                                                                               Counter
	DialsFailed, Ejections, Waits, Resent                                                                     Counter
	UndoNoted, UndoEnded, Undone                                                                              Counter
	LockContended, UnlistedFields                                                                             Counter

	requests, failures, received, sent, bases, ambiguous, merges, overwritten, observed, lostUpdates Counter
	lettersKept, letterReplays                                                                       Counter
	reloads, lockRequests, leasesLapsed, equalMoves, blind, memoryRefused                            Counter
	writes, batched, lockWait                                                                        *prometheus.HistogramVec
	mode, reloadOK, reloadTime                                                                       *prometheus.GaugeVec

	registry *prometheus.Registry
	indices  *IndexLabels
}

// NewMetrics makes the metrics and registers them, with those of the Go runtime and the process.
func NewMetrics(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), indices: NewIndexLabels(maxIndexLabels)}
	for _, c := range m.counters() {
		c.to.vec = prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.name, Help: c.help}, c.labels)
		m.registry.MustRegister(c.to.vec)
		if len(c.labels) == 0 {
			c.to.vec.WithLabelValues() // it is there from the start, with 0: see Start
		}
	}
	m.Start(MetricMemoryRefused, classCredentials)
	m.Start(MetricMemoryRefused, classAnonymous)
	m.Start(MetricReloads, "success")
	m.Start(MetricReloads, "failure")
	m.writes = m.histogram(MetricWriteDuration, "Time from a write's arrival to its answer, by operation.",
		prometheus.ExponentialBucketsRange(0.0005, 30, 14), LabelOp)
	m.batched = m.histogram(MetricBatched, "Changes that one guarded write carried.", []float64{1, 2, 4, 8, 16, 32, 64})
	m.lockWait = m.histogram(MetricLockWait, "Time from a request for a lock to the lease, by class.",
		prometheus.ExponentialBucketsRange(0.001, 60, 12), LabelClass)
	m.mode = m.gauge(MetricMode, "1 for the current mode.", LabelMode)
	m.reloadOK = m.gauge(MetricReloadOK, "1 if the last reload worked.")
	m.reloadTime = m.gauge(MetricReloadTimestamp, "When the current configuration was loaded.")
	m.gauge(MetricBuildInfo, "1, with the program's version as labels.", "version", "revision", "goversion").
		WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Start shows a counter with these labels from now on, with 0: for combinations that are known before anything is counted. Otherwise a
// rate doesn't see the first event.
func (m *Metrics) Start(name string, labels ...string) {
	for _, c := range m.counters() {
		if c.name == name && c.to.vec != nil {
			c.to.vec.WithLabelValues(labels...)
		}
	}
}

// counterSpec is one row of the table of counters.
type counterSpec struct {
	to         *Counter
	name, help string
	labels     []string
}

// counters is the table of all counters.
func (m *Metrics) counters() []counterSpec {
	by := func(labels ...string) []string { return labels }
	return []counterSpec{
		{&m.requests, MetricRequests, "Requests on the data port, by operation and class of status.", by(LabelOp, LabelCode)},
		{&m.failures, MetricFailures, "Errors that optimist itself answered to requests, by error.type: refusals, conflicts, failures " +
			"upstream. Those of a bulk's items don't count.", by(LabelType)},
		{&m.memoryRefused, MetricMemoryRefused, "Requests that found no memory (limits.memory), by class of client: with credentials, " +
			"or anonymous. Writes got a 503, reads passed without being remembered.", by(LabelClass)},
		{&m.received, MetricReceived, "Bytes of bodies that came from clients.", nil},
		{&m.sent, MetricSent, "Bytes of bodies that went to clients.", nil},
		{&m.reloads, MetricReloads, "Reloads of the configuration, by result.", by(LabelResult)},

		{&m.Outcomes, MetricOutcomes, "Writes by outcome, as in the Optimist-Outcome header, and reason.", by(LabelOutcome, LabelReason)},
		{&m.bases, MetricBases, "Writes by the kind of base that was found for them.", by(LabelKind)},
		{&m.LostBases, MetricLostBases, "Writes whose base was known once and isn't any more, by reason.", by(LabelReason)},
		{&m.ambiguous, MetricAmbiguous, "Writes for which several reads could have been the base.", nil},
		{&m.Conflicts, MetricConflicts,
			"Version conflicts (409) that the engine answered to writes, by rule. Those of clients' own guards (reason explicit) don't count.",
			by(LabelRule)},
		{&m.Retries, MetricRetries, "Attempts after the first, by rule.", by(LabelRule)},
		{&m.Fetches, MetricFetches, "Documents fetched for a merge, by rule.", by(LabelRule)},
		{&m.merges, MetricMerges, "Writes acknowledged after a merge with another client's change, by rule.", by(LabelRule)},
		{&m.overwritten, MetricOverwritten, "Values of other clients that a merge overwrote, by rule. " +
			"Those that the rule sets itself, or for which it says sent, don't count.", by(LabelRule)},
		{&m.Keys, MetricKeys, "Requests with an Idempotency-Key, by result: first, repeated (the recorded answer), found (by its mark), " +
			"under_way, reused (for another request), refused (the engine refuses the client's credentials), unknown, " +
			"failed (no record could be made), unrecorded (carried out, and the answer couldn't be kept).",
			by(LabelResult)},
		{&m.UndoNoted, MetricUndoNoted, "Writes that were noted under locks with undo.", nil},
		{&m.UndoEnded, MetricUndoEnded, "Journals of locks with undo that ended, by result: committed or rolled_back.", by(LabelResult)},
		{&m.Undone, MetricUndone, "Documents that a rollback dealt with, by result: restored, or left (a dead letter says what).",
			by(LabelResult)},
		{&m.Marks, MetricDoubtsResolved, "Writes whose answer was lost, and whose result the document's marks showed (write_id), by rule and " +
			"result: applied or not_applied.", by(LabelRule, LabelResult)},
		{&m.StrategiesUnused, MetricStrategiesUnused,
			"_update requests that the engine merged under a rule with strategies, which it doesn't know, by rule.", by(LabelRule)},
		{&m.Untransformed, MetricUntransformed, "Writes to which their rule's transform could not be applied, by rule. " +
			"A bulk that is forwarded whole counts once, as a by-query request does.", by(LabelRule)},
		{&m.Unstamped, MetricUnstamped, "Reads of whole documents that a rule stamps and that got no stamp, by reason.", by(LabelReason)},
		{&m.observed, MetricObserved, "Writes seen in observe mode, by what guarding would have done.", by(LabelWould)},
		{&m.lostUpdates, MetricLostUpdates, "Updates that writes in observe mode have erased, by index.", by(LabelIndex)},
		{&m.equalMoves, MetricEqualMoves,
			"Conflicts in which two clients moved a number equally, and no rule says whether both changes count, by index.", by(LabelIndex)},
		{&m.blind, MetricBlind, "Writes that overwrote a document which their session hadn't read through this optimist, by index.",
			by(LabelIndex)},
		{&m.Unguardable, MetricUnguardable, "Indices found that cannot be guarded or merged, by reason.", by(LabelReason)},
		{&m.UnlistedFields, MetricUnlisted, "Header fields found that seem to choose a tenant and that the configuration doesn't name. " +
			"The log says which.", nil},

		{&m.DialsFailed, MetricUpstreamDials, "Connections to a node that could not be made, by reason.", by(LabelNode, LabelReason)},
		{&m.Ejections, MetricUpstreamEject, "Times that a node was left out because it failed.", by(LabelNode)},
		{&m.Waits, MetricUpstreamWaits, "Requests that waited because all connections to a node were in use.", by(LabelNode)},
		{&m.Resent, MetricUpstreamResent, "Requests sent again, because nothing of them had been sent or because they may be repeated.", nil},

		{&m.lockRequests, MetricLockRequests, "Requests for a lock, by class and outcome: acquired, reentered, held, timeout, full, failed, " +
			"or left if the client left.", by(LabelClass, LabelOutcome)},
		{&m.LockContended, MetricLockContended, "Requests for a lock that another owner had, or for which others waited, by class.",
			by(LabelClass)},
		{&m.leasesLapsed, MetricLeasesLapsed, "Leases that ended without a release, as this optimist noticed, by whether another client " +
			"took the lock over.", by(LabelTaken)},

		{&m.lettersKept, MetricLettersKept, "Writes that could not be placed under a rule with on_exhausted: dead_letter, by reason and place: " +
			"store, folder, or lost if it could not be kept, and the client got the error.", by(LabelReason, LabelPlace)},
		{&m.letterReplays, MetricLetterReplays, "Replays of dead letters, by result: replayed, refused, doubtful, busy, missing, skipped.",
			by(LabelResult)},
	}
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

// Gatherer is what the admin listener serves.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Request counts a request that was answered with a status (0: the client was gone before one), and its bodies' bytes.
func (m *Metrics) Request(op string, status int, received, sent int64) {
	m.requests.Inc(op, class(status))
	m.received.Add(received)
	m.sent.Add(sent)
}

// Failed counts an error that optimist itself answered, by its error.type.
func (m *Metrics) Failed(errorType string) { m.failures.Inc(errorType) }

// MemoryRefused counts a request that found no memory.
func (m *Metrics) MemoryRefused(anonymous bool) {
	if anonymous {
		m.memoryRefused.Inc(classAnonymous)
		return
	}
	m.memoryRefused.Inc(classCredentials)
}

// The classes of clients whose requests find no memory.
const (
	classCredentials = "credentials"
	classAnonymous   = "anonymous"
)

// classes are the labels of statuses, by their hundreds.
var classes = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// class is a status as a label: five values instead of hundreds.
func class(status int) string {
	if status < 0 || status/100 >= len(classes) {
		return classes[0]
	}
	return classes[status/100]
}

// WriteTook counts the time of a write that a rule took.
func (m *Metrics) WriteTook(op string, took time.Duration) { observe(m.writes, took.Seconds(), op) }

// Batched counts a guarded write by the changes that it carried.
func (m *Metrics) Batched(changes int) { observe(m.batched, float64(changes)) }

func observe(h *prometheus.HistogramVec, value float64, labels ...string) {
	if h != nil {
		h.WithLabelValues(labels...).Observe(value)
	}
}

// Base counts the base that a write was given: its kind, and whether others could have been it.
func (m *Metrics) Base(kind string, ambiguous bool) {
	m.bases.Inc(kind)
	if ambiguous {
		m.ambiguous.Inc()
	}
}

// Merged counts a write that was acknowledged after a merge, and the values of other clients that it overwrote.
func (m *Metrics) Merged(rule string, overwritten int) {
	m.merges.Inc(rule)
	m.overwritten.Add(int64(overwritten), rule)
}

// Observed counts a write in observe mode by what guarding would have done with it.
func (m *Metrics) Observed(would string) { m.observed.Inc(would) }

// LostUpdates counts updates of an index's documents that writes in observe mode have erased.
func (m *Metrics) LostUpdates(index string, n int64) { m.countIndex(m.lostUpdates, index, n) }

// EqualMove counts that two clients moved a number of an index's equally, without a rule for it.
func (m *Metrics) EqualMove(index string) { m.countIndex(m.equalMoves, index, 1) }

// Blind counts a write that overwrote a document that its session hadn't read.
func (m *Metrics) Blind(index string) { m.countIndex(m.blind, index, 1) }

func (m *Metrics) countIndex(c Counter, index string, n int64) {
	if m.indices != nil && n > 0 {
		c.Add(n, m.indices.Label(index))
	}
}

// LockRequest counts a request for a lock that has ended, and its time if it got its lock.
func (m *Metrics) LockRequest(class, outcome string, took time.Duration) {
	m.lockRequests.Inc(class, outcome)
	if outcome == "acquired" || outcome == "reentered" {
		observe(m.lockWait, took.Seconds(), class)
	}
}

// LeasesLapsed counts leases that ended without a release. taken says whether another owner got the lock by it.
func (m *Metrics) LeasesLapsed(n int, taken bool) {
	m.leasesLapsed.Add(int64(n), strconv.FormatBool(taken))
}

// LetterKept counts a write that could not be placed, and where it is kept.
func (m *Metrics) LetterKept(reason, place string) { m.lettersKept.Inc(reason, place) }

// LetterReplayed counts a replay of a dead letter.
func (m *Metrics) LetterReplayed(result string) { m.letterReplays.Inc(result) }

// Mode sets the mode in force, one of all.
func (m *Metrics) Mode(now string, all ...string) {
	for _, mode := range all {
		m.mode.WithLabelValues(mode).Set(oneIf(mode == now))
	}
}

// Reloaded counts a reload of the configuration.
func (m *Metrics) Reloaded(ok bool, at time.Time) {
	m.reloadOK.WithLabelValues().Set(oneIf(ok))
	if !ok {
		m.reloads.Inc("failure")
		return
	}
	m.reloads.Inc("success")
	m.reloadTime.WithLabelValues().Set(float64(at.UnixMilli()) / 1000)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
