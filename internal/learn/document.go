package learn

import (
	"math"
	"time"
)

// halfLife is after how long a conflict counts half in a document's rate.
const halfLife = time.Minute

// document is what is known of the conflicts of one document.
type document struct {
	name      string // of the index, as a client named it last
	rule      string // that took the last write
	conflicts int
	weight    float64 // of the conflicts at the time last: each counts less as it gets older
	last      time.Time

	clients, paths, outcomes tally
}

func (d *document) count(now time.Time, client, outcome string) {
	d.weight, d.last = d.weightAt(now)+1, now
	d.conflicts++
	d.clients.add(client)
	d.outcomes.add(outcome)
}

func (d *document) weightAt(now time.Time) float64 {
	return d.weight * math.Exp2(-float64(now.Sub(d.last))/float64(halfLife))
}
