package write

import (
	"time"

	"optimist/internal/doc"
	"optimist/internal/doubt"
	"optimist/internal/mark"
	"optimist/internal/outbound"
	"optimist/internal/respond"
	"optimist/internal/undo"
	"optimist/retry"
)

// attempt is the work on one batch of changes to a document: here a 409 becomes a 200.
//
// Each try asks every change's intent what shall stand in place of the current revision, and writes that under the revision's guard. At
// the first try the current revision is the base itself, or what the lane's last write left. The latter is a guess: a guarded write may be
// made from it, but nothing is decided by it. After a conflict, the current revision is read from the engine.
type attempt struct {
	s            *Service
	batch        *retry.Batch[*change]
	open         []*change // without an answer yet, in order
	separate     []*change // could not go with the others: each goes by itself, after them
	cur          doc.Revision
	trail        mark.Trail // the marks of cur, which aren't in its Source
	source       source
	early        bool // cur was read before the first try, to make a write from: nothing is decided by it
	doubt        doubt.Record
	load         load            // of the last try
	body         []byte          // the document of load, without marks
	changes      int             // how many changes the last fold has put into the document
	until        time.Time       // no try begins later, if the policy has a limit
	parked       bool            // the first try waits for its answer: see Parker
	journalPlace undo.Place      // where the journal has its note of the last try; zero: nowhere
	budgetMark   int64           // what the leader's request held before the first try
	conflict     *respond.Answer // the engine's last 409, for when trying ends
	noIndex      bool            // there was no index when the document was last read
}

// source is where the current revision comes from.
type source uint8

const (
	unread source = iota // nothing is known yet
	based                // it is the base of a change
	guess                // it is what the lane's last write left
	read                 // it was read from the engine after the lane's last write
)

// share reports whether m may go in the same write as first. Both must be shareable, and have the same rule, route, parameters and media
// type. Both are patches, or neither is. The lane is locked during the call.
func (s *Service) share(first, m *change) bool {
	return s.mayShare(first) && m.shareable && first.Rule == m.Rule && (first.patch == nil) == (m.patch == nil) &&
		first.policy().MaxAttempts == m.policy().MaxAttempts &&
		first.req.Tokens.Equal(m.req.Tokens) && first.Credentials() == m.Credentials() && first.req.Route == m.req.Route &&
		outbound.Alike(&first.out, &m.out)
}

// mayShare reports whether the change may share a write now. That its client sees documents whole is often found out while changes wait.
func (s *Service) mayShare(c *change) bool {
	return c.shareable && (c.patch != nil || s.catalog.KnownWhole(c.Asker(), c.Name))
}
