package write

import (
	"context"

	"optimist/internal/catalog"
	"optimist/internal/rule"
)

// Reasons why a write is passed, or guarded and never merged. They are tokens of the outcome and labels of a metric.
const (
	ReasonSigned     = "signed"               // the request is signed over its query or body
	ReasonAuth       = "connection_auth"      // the authentication belongs to the connection (Negotiate, NTLM)
	ReasonFragment   = "fragment"             // the request's target has a number sign, behind which engines heed no parameter
	ReasonFormat     = "format"               // the body isn't JSON, or not one object
	ReasonTooLarge   = "too_large"            // the body is over the limit up to which writes are held
	ReasonDataStream = "data_stream"          // the index backs a data stream, and no rule names it
	ReasonSeqNo      = catalog.ReasonSeqNo    // the index has no sequence numbers
	ReasonSource     = catalog.ReasonSource   // _source isn't kept whole: guarded, not merged
	ReasonPipeline   = catalog.ReasonPipeline // an ingest pipeline changes what is written: guarded, not merged
	ReasonFiltered   = catalog.ReasonFiltered // the client's view may be filtered: guarded, not merged
	ReasonMetadata   = catalog.ReasonMetadata // what the index is may not be asked: guarded, not merged
	ReasonNumbers    = "numbers"              // the base's body isn't known: guarded, not merged
	ReasonBlind      = "blind"                // the session writes what it hasn't read
	ReasonExplicit   = "explicit"             // the client brought its own guard
	ReasonBulk       = "bulk"                 // the items of a bulk are not guarded
	ReasonByQuery    = "by_query"             // nor are the documents of an update or delete by query
)

// mergeable tells whether the client's documents of the index may be fetched, merged and written back; if not, why.
func (s *Service) mergeable(ctx context.Context, c *change) (reason string) {
	if reason = c.staticReason(); reason != "" {
		return reason
	}
	if whole, err := s.whole(ctx, c); err != nil || !whole {
		return ReasonFiltered // for now, if it couldn't be asked: the next write asks again
	}
	return ""
}

// whole tells whether the client's view of the index's documents is unfiltered. The error says that the engine couldn't be asked.
func (s *Service) whole(ctx context.Context, c *change) (bool, error) {
	return s.catalog.SeesWhole(ctx, c.req.asker(), c.name, c.doc.Routing)
}

// asker is the request's client, for the catalog.
func (r *Request) asker() catalog.Asker {
	return catalog.Asker{Credentials: r.Session.Credentials(), Caller: r.Caller}
}

// knownMergeable is mergeable as far as it is known without asking, or waiting for somebody who asks.
func (s *Service) knownMergeable(c *change) bool {
	return c.staticReason() == "" && s.catalog.KnownWhole(c.req.Session.Credentials(), c.name)
}

// staticReason is why the change can't be merged, from what is known of the index and the request.
func (c *change) staticReason() string {
	switch {
	case c.index.Unknown != "":
		return c.index.Unknown
	case c.index.Partial:
		return ReasonSource
	case (c.index.Pipeline || c.pipeline) && c.req.Rule.Pipeline != rule.PipelineRerun:
		return ReasonPipeline
	case !c.json:
		return ReasonFormat
	}
	return ""
}
