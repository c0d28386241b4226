package write

import (
	"net/http"

	"optimist/internal/intent"
	"optimist/internal/learn"
	"optimist/internal/outcome"
)

// met reports whether the change met changes that its client hadn't seen. It is asked when the change has ended.
func (c *change) met() bool {
	return c.attempts > 1 || c.Outcome.Kind == outcome.Merged || c.Outcome.Kind == outcome.Combined ||
		c.answer != nil && c.answer.Status == http.StatusConflict
}

// tellMet calls Events.Met for a change that met changes of other clients.
func (s *Service) tellMet(c *change) {
	if s.events.Met == nil || !c.met() {
		return
	}
	met := learn.Conflict{Ref: c.Doc.Ref, Name: c.Name, Client: c.req.Client, Merger: c.Rule.Merger, Outcome: c.Outcome.Kind.String()}
	switch {
	case c.answer == nil:
		met.Outcome = "failed"
	case c.answer.Status == http.StatusConflict:
		met.Outcome = "refused"
	case c.answer.Status < 300 && c.patch == nil && c.draft.From != nil: // merged
		met.Base, met.Sent, met.Current = c.Base.View, c.Sent, c.draft.From
		if p, ok := c.intent.(*intent.Partial); ok {
			met.Sent = p.Made
		}
	}
	s.events.Met(&met)
}
