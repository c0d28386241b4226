package undeliverable

import (
	"optimist/internal/base"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
)

// Unpatchable is the refusal of a patch that can't be done safely, as far as that is known without a look at the document; nil: it can be
// done. guardable says that the index has sequence numbers.
func Unpatchable(w *base.Search, guardable bool) *respond.Answer {
	why := ""
	switch {
	case w.Index.UUID != "" && w.Name == w.Index.Name && intake.DemandsAlias(w.Op):
		return respond.NoSuchIndex(w.Name, " and [require_alias] request flag is [true] and ["+w.Name+"] is not an alias")
	case w.Index.DataStream != "" && w.Name == w.Index.DataStream:
		return patch.Illegal("only write ops with an op_type of create are allowed in data streams")
	case !guardable:
		w.Outcome.Reason, why = outcome.ReasonSeqNo, "index ["+w.Doc.Index+"] has no sequence numbers to guard it with"
	case w.Index.Unknown != "":
		w.Outcome.Reason, why = w.Index.Unknown, "these credentials may not ask what index ["+w.Doc.Index+"] is, so that it isn't known "+
			"whether its documents can be read as they are stored (view_index_metadata lets them, or upstream.auth of optimist's own)"
	case w.Index.Partial:
		w.Outcome.Reason, why = outcome.ReasonSource, "index ["+w.Doc.Index+
			"] doesn't keep or serve _source whole: what isn't shown would be lost"
	default:
		return nil
	}
	return patch.Illegal("[%s]: the document can't be patched: %s", w.Doc.ID, why)
}
