package obs

// DialFailed counts a connection that could not be made.
func (m *Metrics) DialFailed(node, reason string) {
	if m != nil {
		m.dials.WithLabelValues(node, reason).Inc()
	}
}

// Ejected counts a node that is left out because it failed.
func (m *Metrics) Ejected(node string) {
	if m != nil {
		m.ejections.WithLabelValues(node).Inc()
	}
}

// Waited counts a request that waited for a connection to a node.
func (m *Metrics) Waited(node string) {
	if m != nil {
		m.waits.WithLabelValues(node).Inc()
	}
}

// Resent counts a request that was sent again.
func (m *Metrics) Resent() {
	if m != nil {
		m.resent.Inc()
	}
}
