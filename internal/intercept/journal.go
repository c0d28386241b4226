package intercept

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/fencing"
	"optimist/internal/journal"
	"optimist/internal/rule"
	"optimist/internal/undo"
)

// takeJournal finds the journal of the locks that a write names, if any has one. It reports true where the write can't be made under it:
// the client has been told.
func (r *request) takeJournal(i *Interceptor) (refused bool) {
	j, err := i.journalOf(r, r.tokens)
	r.journal = j
	op := r.Op()
	switch {
	case err != nil:
	case j == nil:
		return false
	case i.Rules.Mode() != rule.Guard:
		err = unguarded("optimist's mode is " + i.Rules.Mode().String())
	case op.Kind == api.UpdateByQuery, op.Kind == api.DeleteByQuery, op.Kind == api.Reindex:
		err = unguarded("the engine changes what a query finds by itself; search for the documents, and send them as a bulk")
	case op.Kind == api.IndexAuto:
		err = unguarded("this one names no document; give it an id")
	default:
		return false
	}
	fail(r, err)
	return true
}

// journalOf is the journal of tokens; nil where none has one.
func (i *Interceptor) journalOf(r *request, tokens fencing.Tokens) (journal.Journal, error) {
	if i.Journals == nil || len(tokens) == 0 {
		return nil, nil
	}
	return i.Journals(r.Context(), tokens)
}

// unguarded is the refusal of a write that can't be undone.
func unguarded(why string) error { return failure(&undo.RefusedError{Why: why}) }

// noRule is why a write isn't guarded that no rule takes.
const noRule = "no rule guards this one"

// forJournal decides about an item of a bulk under a lock with undo: it is guarded or refused, whatever its rule says of bulks.
func (b *items) forJournal(it *item) {
	switch {
	case b.i.Rules.Effective(it.rule) != rule.Guard:
		it.err = unguarded(noRule)
	case it.rule.Bulk == rule.BulkRefuse:
		it.err = refusedBy(it.rule)
	case it.Kind == api.IndexAuto:
		it.err = unguarded("this one names no document; give it an id")
	case it.Odd:
		it.err = unguarded("it has something that only the engine knows")
	default:
		it.PassRejected, it.guarded, it.named.guarded = it.rule.PassRejected, true, true
	}
}

// journalOfItem is the journal of an item's tokens; nil where none has one.
func (b *items) journalOfItem(it *item) (journal.Journal, error) {
	if it.Token == "" {
		return b.r.journal, nil
	}
	tokens, err := b.r.tokensOf(budget.Of(b.r.Context()), &it.Item)
	if err != nil {
		return nil, err
	}
	return b.i.journalOf(b.r, tokens)
}

// gathered is a journal for an item of a bulk: the items note their writes at the same time, so that a page has all of them.
type gathered struct {
	journal.Journal
	group *bulk.Group
}

// Note implements journal.Journal.
func (g gathered) Note(ctx context.Context, w *undo.Write) (undo.Place, error) {
	g.group.Meet()
	return g.Journal.Note(ctx, w)
}
