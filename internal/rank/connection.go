package rank

// Clients that keep connections of their own tell by the connection which of them has read what. Clients that share a pool don't, and there
// the same evidence misleads. So it is learnt: where what was sent tells candidates apart by its content, it shows whether the one that
// came over the write's own connection is the likeliest, too.

// Evidence is what one choice has shown of connections.
type Evidence uint8

// What a choice shows.
const (
	NoEvidence  Evidence = iota // there was nothing to compare
	Agrees                      // the content says the same as the connection
	Contradicts                 // it says otherwise
)

// Connections are what the last choices have shown of the connections of a session. The zero value knows nothing.
type Connections struct {
	agreed uint8 // in a row
	breaks uint8 // how often something contradicted lately
}

const (
	// enoughChoices is how many choices have to agree in a row before a connection counts. Each contradiction doubles that.
	enoughChoices = 12
	maxChoices    = 8 * enoughChoices
	maxBreaks     = 3
	// enoughOfOne is how many choices have to agree in a row before a single connection is steady.
	enoughOfOne = 4
)

// Add counts what a choice has shown.
func (c *Connections) Add(e Evidence) {
	switch e {
	case Contradicts:
		c.agreed, c.breaks = 0, min(c.breaks+1, maxBreaks)
	case Agrees:
		if c.agreed++; c.agreed == maxChoices-1 && c.breaks > 0 {
			c.agreed, c.breaks = maxChoices/2, c.breaks-1
		}
		c.agreed = min(c.agreed, maxChoices-2)
	}
}

// tell reports whether the clients keep connections of their own, for all that is known.
func (c *Connections) tell() bool {
	return int(c.agreed) >= min(enoughChoices<<c.breaks, maxChoices-2)
}

// Steady reports whether the last choices of a single connection have agreed. Each contradiction doubles how many that takes.
func (c *Connections) Steady() bool { return int(c.agreed) >= enoughOfOne<<c.breaks }

// judgeConnection judges the candidate that came over the write's own connection, and returns what the content shows of connections.
// Content is the better evidence of the two, where it is any. It is none where it only says that clients seldom save unchanged, or seldom
// write from memory, and where candidates have the same price.
func judgeConnection(cs []Candidate, verdicts []verdict, c *Connections) Evidence {
	own := len(cs) - 1
	for own >= 0 && !cs[own].Own { // the newest, of which a read comes after the history
		own--
	}
	if own < 0 || verdicts[own].unknown {
		return NoEvidence
	}
	o := verdicts[own]
	if cs[own].Spent {
		o.price -= spent // of its content alone
	}
	v := o.rival(verdicts)
	if v == nil {
		return NoEvidence
	}
	save := o.saves() && o.price <= v.price+idle+distant
	shown := NoEvidence
	switch {
	case o.likelier(v):
		shown = Agrees
	case v.likelier(&o) && (!save || cs[own].Written): // who has written reads before the next change
		shown = Contradicts
	}
	if c.tell() && !o.far {
		if save {
			o.price = min(o.price, v.price)
		}
		verdicts[own].price = o.price - 1
	}
	return shown
}

// rival returns the likeliest of those that mean another change; nil: there is none.
func (v *verdict) rival(verdicts []verdict) (rival *verdict) {
	for i := range verdicts {
		r := &verdicts[i]
		if !r.far && !r.unknown && (v.far || r.changes != v.changes) && (rival == nil || r.likelier(rival)) {
			rival = r
		}
	}
	return rival
}
