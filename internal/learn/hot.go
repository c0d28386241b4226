package learn

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Hot is a document with conflicts.
type Hot struct {
	Index     string  `json:"index"`
	ID        string  `json:"id"`
	Routing   string  `json:"routing,omitempty"`
	Conflicts int     `json:"conflicts"`
	PerMinute float64 `json:"per_minute"` // of late
	Last      string  `json:"last"`
	Clients   []Named `json:"clients"`
	Paths     []Named `json:"paths"`
	Outcomes  []Named `json:"outcomes"`
}

// Named is how many conflicts a client, a path or an outcome had a part in. Strategy is what decides at a path.
type Named struct {
	Name      string `json:"name"`
	Conflicts int    `json:"conflicts"`
	Strategy  string `json:"strategy,omitempty"`
}

// Hot are the documents with the most conflicts of late, at most top. rules tells what those in force say.
func (l *Learner) Hot(top int, rules Rules) []Hot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, list := l.o.Now(), make([]Hot, 0, l.documents.Len())
	for ref := range l.documents.Keys() {
		d, _ := l.documents.Peek(ref)
		h := Hot{Index: ref.Index, ID: ref.ID, Routing: ref.Routing, Conflicts: d.conflicts,
			PerMinute: math.Round(10*math.Ln2*d.weightAt(now)) / 10, Last: d.last.UTC().Format(time.RFC3339),
			Clients: byCount(d.clients), Paths: byCount(d.paths), Outcomes: byCount(d.outcomes)}
		for i := range h.Paths {
			h.Paths[i].Strategy = rules(ref.Index, d.name, d.rule, h.Paths[i].Name).Strategy
		}
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Hot) int {
		return cmp.Or(cmp.Compare(b.PerMinute, a.PerMinute), cmp.Compare(b.Conflicts, a.Conflicts), cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), max(top, 0))]
}

// byCount lists names, those with the most conflicts first.
func byCount(names tally) []Named {
	list := make([]Named, 0, len(names))
	for name, n := range names {
		list = append(list, Named{Name: name, Conflicts: n})
	}
	slices.SortFunc(list, func(a, b Named) int {
		return cmp.Or(cmp.Compare(b.Conflicts, a.Conflicts), cmp.Compare(a.Name, b.Name))
	})
	return list
}
