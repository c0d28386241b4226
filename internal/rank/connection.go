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

// judgeConnection judges the candidate that came over the write's own connection, and returns what the content shows of connections.
// Content is the better evidence of the two, where it is any. It is none where it only says that clients seldom save unchanged, or seldom
// write from memory, and where candidates have the same price.
func judgeConnection(cs []Candidate, verdicts []verdict, c *Connections) Evidence {
	own := -1
	for i := range cs {
		if cs[i].Own {
			own = i
		}
	}
	if own < 0 || verdicts[own].unknown {
		return NoEvidence
	}
	o := verdicts[own]
	if cs[own].Spent {
		o.price -= spent // of its content alone
	}
	other := -1
	for i := range verdicts {
		v := &verdicts[i]
		if !v.far && !v.unknown && (o.far || v.changes != o.changes) && (other < 0 || v.likelier(&verdicts[other])) {
			other = i
		}
	}
	if other < 0 {
		return NoEvidence
	}
	v := &verdicts[other]
	if c.tell() && !o.far {
		verdicts[own].price = o.price - 1
		if o.saves() && o.price <= v.price+idle+distant {
			verdicts[own].price = min(o.price, v.price) - 1
		}
	}
	switch {
	case o.likelier(v):
		return Agrees
	case !v.likelier(&o), o.saves() && !cs[own].Written && o.price <= v.price+idle+distant:
		return NoEvidence
	}
	return Contradicts // also where others have written over the connection: who has written reads before the next change
}
