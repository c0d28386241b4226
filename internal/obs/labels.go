package obs

import (
	"strings"
	"sync"
)

// OtherIndex is the label of every index beyond the cap.
const OtherIndex = "other"

// IndexLabels gives index names as metric labels, up to a number of different ones; further ones are OtherIndex. Every client that can
// write to the engine can make up names, and each label costs memory here and where the metrics are scraped. Its methods are safe for
// concurrent use.
type IndexLabels struct {
	limit int
	mu    sync.RWMutex
	known map[string]string
}

// NewIndexLabels allows limit different names.
func NewIndexLabels(limit int) *IndexLabels {
	return &IndexLabels{limit: limit, known: make(map[string]string, limit)}
}

// Label is the label for an index. The index may point into a buffer that is used again: what is kept is a copy.
func (l *IndexLabels) Label(index string) string {
	l.mu.RLock()
	label, ok := l.known[index]
	full := len(l.known) >= l.limit
	l.mu.RUnlock()
	if ok {
		return label
	}
	if full {
		return OtherIndex
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, ok := l.known[index]; ok {
		return label
	}
	if len(l.known) >= l.limit {
		return OtherIndex
	}
	label = strings.Clone(index)
	l.known[label] = label
	return label
}
