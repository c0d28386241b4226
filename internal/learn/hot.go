package learn

import (
	"cmp"
	"math"
	"slices"
	"time"

	"optimist/internal/doc"
)

// halfLife is after how long a conflict counts half in a document's rate.
const halfLife = time.Minute

// document is what is known of the conflicts of one document.
type document struct {
	name      string // of the index, as a client named it last
	conflicts int
	weight    float64 // of the conflicts at the time last: each counts less as it gets older
	last      time.Time

	clients, paths, outcomes map[string]int
}

// document is what is known of a document.
func (l *Learner) document(ref doc.Ref) *document {
	d, ok := l.documents.Get(ref)
	if !ok {
		d = &document{clients: map[string]int{}, paths: map[string]int{}, outcomes: map[string]int{}}
		l.documents.Add(ref.Clone(), d)
	}
	return d
}

func (d *document) count(now time.Time, client, outcome string) {
	d.weight, d.last = d.weightAt(now)+1, now
	d.conflicts++
	add(d.clients, client)
	add(d.outcomes, outcome)
}

func (d *document) weightAt(now time.Time) float64 {
	return d.weight * math.Exp2(-float64(now.Sub(d.last))/float64(halfLife))
}

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
	for _, ref := range l.documents.Keys() {
		d, _ := l.documents.Peek(ref)
		h := Hot{Index: ref.Index, ID: ref.ID, Routing: ref.Routing, Conflicts: d.conflicts,
			PerMinute: math.Round(10*math.Ln2*d.weightAt(now)) / 10, Last: d.last.UTC().Format(time.RFC3339),
			Clients: byCount(d.clients), Paths: byCount(d.paths), Outcomes: byCount(d.outcomes)}
		for i := range h.Paths {
			h.Paths[i].Strategy = rules(ref.Index, d.name, h.Paths[i].Name).Strategy
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
func byCount(names map[string]int) []Named {
	list := make([]Named, 0, len(names))
	for name, n := range names {
		list = append(list, Named{Name: name, Conflicts: n})
	}
	slices.SortFunc(list, func(a, b Named) int {
		return cmp.Or(cmp.Compare(b.Conflicts, a.Conflicts), cmp.Compare(a.Name, b.Name))
	})
	return list
}
