package obs

import "github.com/prometheus/client_golang/prometheus"

// Sessions is what the base cache counts; the counters only grow.
type Sessions struct {
	Hits, Misses, Evictions uint64
	Bytes, Entries          int64
}

// Node is what is known of one node of the engine.
type Node struct {
	Name string // as configured
	Up   bool
	// AuthRefused says that the node refuses optimist's own credentials.
	AuthRefused bool
	Open, Idle  int // connections
}

// emit hands out one number: of which metric, and with which values of its labels.
type emit func(of *prometheus.Desc, value float64, labels ...string)

// collector makes numbers whenever the metrics are read.
type collector struct {
	kind prometheus.ValueType
	desc []*prometheus.Desc
	read func(emit)
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.read(func(of *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(of, c.kind, value, labels...)
	})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// WatchSessions has the base cache's numbers read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchSessions(read func() Sessions) {
	lookups := desc(MetricSessionLookups, "Lookups of a base in what sessions have read, by result.", LabelResult)
	evicted := desc(MetricSessionEvicted, "Revisions that were forgotten because the memory (sessions.memory) was full.")
	m.registry.MustRegister(&collector{prometheus.CounterValue, []*prometheus.Desc{lookups, evicted}, func(emit emit) {
		s := read()
		emit(lookups, float64(s.Hits), "hit")
		emit(lookups, float64(s.Misses), "miss")
		emit(evicted, float64(s.Evictions))
	}})
	m.watch(MetricSessionBytes, "Bytes of memory that remembered revisions take.", nil, func() float64 { return float64(read().Bytes) })
	m.watch(MetricSessionEntries, "Revisions remembered.", nil, func() float64 { return float64(read().Entries) })
}

// WatchNodes has the engine's nodes asked for whenever the metrics are read. Call it once at most.
func (m *Metrics) WatchNodes(read func() []Node) {
	up := desc(MetricUpstreamUp, "1 if optimist takes the node to be alive.", LabelNode)
	auth := desc(MetricUpstreamAuth, "1 while the node refuses optimist's own credentials (upstream.auth).", LabelNode)
	conns := desc(MetricUpstreamConns, "Connections to the node, by state: open, or idle (a part of the open ones).", LabelNode, LabelState)
	m.registry.MustRegister(&collector{prometheus.GaugeValue, []*prometheus.Desc{up, auth, conns}, func(emit emit) {
		for _, n := range read() {
			emit(up, oneIf(n.Up), n.Name)
			emit(auth, oneIf(n.AuthRefused), n.Name)
			emit(conns, float64(n.Open), n.Name, "open")
			emit(conns, float64(n.Idle), n.Name, "idle")
		}
	}})
}

// Writes is what the bound on writes under way counts; Refused only grows.
type Writes struct {
	Limit, Out, Foreground, Background int
	Refused                            uint64
}

// WatchWrites has the bound on writes under way read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchWrites(read func() Writes) {
	limit := desc(MetricWriteLimit, "Guarded writes that may be out to the engine at once (upstream.adaptive_limit).")
	out := desc(MetricWritesOut, "Guarded writes that are out to the engine.")
	queued := desc(MetricWritesQueued, "Guarded writes that wait for their turn, by class.", LabelClass)
	m.registry.MustRegister(&collector{prometheus.GaugeValue, []*prometheus.Desc{limit, out, queued}, func(emit emit) {
		w := read()
		emit(limit, float64(w.Limit))
		emit(out, float64(w.Out))
		emit(queued, float64(w.Foreground), "foreground")
		emit(queued, float64(w.Background), "background")
	}})
	refused := desc(MetricWritesRefused, "Guarded writes whose turn didn't come in time. They got a 429, and nothing of them was sent.")
	m.registry.MustRegister(&collector{prometheus.CounterValue, []*prometheus.Desc{refused}, func(emit emit) {
		emit(refused, float64(read().Refused))
	}})
}

// WatchLocks has the locks that are held and waited for read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchLocks(held func() int, waiting func(class string) int) {
	m.watch(MetricLocksHeld, "Leases that this optimist gave out and that still last.", nil, func() float64 { return float64(held()) })
	for _, class := range []string{"foreground", "background"} {
		m.watch(MetricLocksWaiting, "Requests that wait for a lock at this optimist, by class.", prometheus.Labels{LabelClass: class},
			func() float64 { return float64(waiting(class)) })
	}
}

// WatchConnections has the number of connected clients read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchConnections(read func() int) {
	m.watch(MetricConnections, "Clients connected to the data port.", nil, func() float64 { return float64(read()) })
}

// WatchMemory has the memory that requests have taken read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchMemory(limit int64, taken func() int64) {
	m.watch(MetricMemoryTaken, "Bytes that the bodies, answers and merges of requests under way have taken.", nil,
		func() float64 { return float64(taken()) })
	m.watch(MetricMemoryLimit, "Bytes that they may take (limits.memory).", nil, func() float64 { return float64(limit) })
}

// WatchReady has readiness asked for whenever the metrics are read. Call it once at most.
func (m *Metrics) WatchReady(read func() bool) {
	m.watch(MetricReady, "1 while /_optimist/ready answers 200.", nil, func() float64 { return oneIf(read()) })
}

// watch has a gauge read whenever the metrics are.
func (m *Metrics) watch(name, help string, labels prometheus.Labels, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
}

// WatchLetters has the dead letters in the folder read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchLetters(held func() (letters int, bytes int64)) {
	m.watch(MetricLettersInFolder, "Dead letters in this optimist's folder (dead_letters.folder).", nil, func() float64 {
		letters, _ := held()
		return float64(letters)
	})
	m.watch(MetricLetterBytes, "Bytes that they take (dead_letters.max_folder).", nil, func() float64 {
		_, bytes := held()
		return float64(bytes)
	})
}
