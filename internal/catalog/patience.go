package catalog

import (
	"context"
	"errors"
	"time"
)

// Patience is how long one read waits for the engine to answer questions about indices: for one answer a second, and for all of them
// together a second, too. The last question may be asked when most of that is spent, so it is two seconds at most. A read of many indices
// must not wait for each of them if the engine is slow, or doesn't answer. The zero value has all of it. It is for one goroutine.
type Patience struct {
	// Connection is what the read holds while its answer comes. It is given back before a question: while somebody waits for a connection
	// to ask, the read must not hold another. Nil: the read holds none.
	Connection interface{ FreeUpstream() }

	spent time.Duration
}

// errImpatient is why a read doesn't ask.
var errImpatient = errors.New("the read has waited too long for what other indices are")

// resolveSoon is resolve for a read, within its patience. The error is errImpatient if nothing of that is left.
func (c *Catalog) resolveSoon(ctx context.Context, asker Asker, name string, maxAge time.Duration) (Index, error) {
	began := time.Now()
	if p := asker.Patience; p != nil {
		if p.spent >= readBudget {
			return unknown(name), unavailable(name, errImpatient)
		}
		if p.Connection != nil {
			p.Connection.FreeUpstream()
		}
		defer func() { p.spent += time.Since(began) }()
	}
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	asker.Until = began.Add(readBudget)
	return c.resolve(ctx, asker, name, maxAge)
}
