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

// WatchSessions has the base cache's numbers read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchSessions(read func() Sessions) {
	if m != nil {
		m.registry.MustRegister(&sessionsCollector{
			read:    read,
			lookups: desc(MetricSessionLookups, "Lookups of a base in what sessions have read, by result.", LabelResult),
			evicted: desc(MetricSessionEvicted, "Revisions that were forgotten because the memory (sessions.memory) was full."),
			bytes:   desc(MetricSessionBytes, "Bytes of memory that remembered revisions take."),
			entries: desc(MetricSessionEntries, "Revisions remembered."),
		})
	}
}

// WatchNodes has the engine's nodes asked for whenever the metrics are read. Call it once at most.
func (m *Metrics) WatchNodes(read func() []Node) {
	if m != nil {
		m.registry.MustRegister(&nodesCollector{
			read: read,
			up:   desc(MetricUpstreamUp, "1 if optimist takes the node to be alive.", LabelNode),
			auth: desc(MetricUpstreamAuth, "1 while the node refuses optimist's own credentials (upstream.auth).", LabelNode),
			conns: desc(MetricUpstreamConns, "Connections to the node, by state: open ones, and those of them that are idle.",
				LabelNode, LabelState),
		})
	}
}

// WatchConnections has the number of connected clients read whenever the metrics are. Call it once at most.
func (m *Metrics) WatchConnections(read func() int) {
	if m != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricConnections,
			Help: "Clients connected to the data port."}, func() float64 { return float64(read()) }))
	}
}

// WatchReady has readiness asked for whenever the metrics are read. Call it once at most.
func (m *Metrics) WatchReady(read func() bool) {
	if m != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricReady,
			Help: "1 while /_optimist/ready answers 200."}, func() float64 { return b2f(read()) }))
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

type sessionsCollector struct {
	read                             func() Sessions
	lookups, evicted, bytes, entries *prometheus.Desc
}

func (c *sessionsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.lookups, c.evicted, c.bytes, c.entries} {
		ch <- d
	}
}

func (c *sessionsCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.read()
	ch <- prometheus.MustNewConstMetric(c.lookups, prometheus.CounterValue, float64(s.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.lookups, prometheus.CounterValue, float64(s.Misses), "miss")
	ch <- prometheus.MustNewConstMetric(c.evicted, prometheus.CounterValue, float64(s.Evictions))
	ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(s.Entries))
}

type nodesCollector struct {
	read            func() []Node
	up, auth, conns *prometheus.Desc
}

func (c *nodesCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.up
	ch <- c.auth
	ch <- c.conns
}

func (c *nodesCollector) Collect(ch chan<- prometheus.Metric) {
	for _, n := range c.read() {
		ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, b2f(n.Up), n.Name)
		ch <- prometheus.MustNewConstMetric(c.auth, prometheus.GaugeValue, b2f(n.AuthRefused), n.Name)
		ch <- prometheus.MustNewConstMetric(c.conns, prometheus.GaugeValue, float64(n.Open), n.Name, "open")
		ch <- prometheus.MustNewConstMetric(c.conns, prometheus.GaugeValue, float64(n.Idle), n.Name, "idle")
	}
}
