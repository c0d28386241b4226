package intercept

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/es"
	"optimist/internal/fencing"
	"optimist/internal/journal"
	"optimist/internal/rule"
	"optimist/internal/undo"
)

// Journals are those of some tokens.
type Journals interface {
	// Of is the journal of the tokens of one write; nil where none has one. The error is the client's answer.
	Of(tokens []int64) (journal.Journal, error)
}

// takeJournal finds the journal of the locks that a write names, if any has one. It reports true where the write can't be made under it:
// the client has been told.
func (r *request) takeJournal(i *Interceptor) (refused bool) {
	all, err := i.journalsOf(r.Context(), r, r.tokens)
	switch {
	case err != nil:
		err = unasked(err)
	case all != nil:
		r.journal, err = all.Of(r.tokens)
	}
	op := r.Op()
	switch {
	case err != nil:
	case r.journal == nil:
		return false
	case i.Rules.Mode() != rule.Guard:
		err = cantUndo("optimist's mode is " + i.Rules.Mode().String())
	case op.Kind == api.UpdateByQuery, op.Kind == api.DeleteByQuery, op.Kind == api.Reindex:
		err = cantUndo("the engine changes what a query finds by itself; search for the documents, and send them as a bulk")
	case op.Kind == api.IndexAuto:
		err = cantUndo("this one names no document; give it an id")
	default:
		return false
	}
	fail(r, err)
	return true
}

// journalsOf finds the journals of tokens, each named once; nil where there can't be any. They are read with optimist's own credentials,
// and so for nobody whom the engine refuses: then the error is a *es.StatusError of 401. Nobody can ask that of a client that signs its
// requests.
func (i *Interceptor) journalsOf(ctx context.Context, r *request, tokens fencing.Tokens) (Journals, error) {
	if i.Journals == nil || len(tokens) == 0 {
		return nil, nil
	}
	if r.Rewritable() {
		switch refused, err := i.refusal(ctx, r); {
		case err != nil:
			return nil, err
		case refused != nil:
			defer refused.Release()
			return nil, &es.StatusError{Status: refused.Status, Body: bytes.Clone(refused.Body), Challenge: es.Challenge(refused.Fields)}
		}
	}
	return i.Journals(ctx, r.Place(), tokens)
}

// cantUndo is the refusal of a write that can't be undone, under a lock with undo.
func cantUndo(why string) error { return failure(&undo.RefusedError{Why: why}) }

// noRule is why a write isn't guarded that no rule takes.
const noRule = "no rule guards this one"

// forJournal decides about an item of a bulk under a lock with undo: it is guarded or refused, whatever its rule says of bulks.
func (b *items) forJournal(it *item) {
	switch {
	case b.i.Rules.Effective(it.rule) != rule.Guard:
		it.err = cantUndo(noRule)
	case it.rule.Bulk == rule.BulkRefuse:
		it.err = refusedBy(it.rule)
	case it.Kind == api.IndexAuto:
		it.err = cantUndo("this one names no document; give it an id")
	case it.Odd:
		it.err = cantUndo("it has something that only the engine knows")
	default:
		it.PassRejected, it.course, it.named.guarded = it.rule.PassRejected, guarded, true
	}
}

// findJournals finds the journals of the tokens that items name themselves: with one request to the engine, and not one for each item.
func (b *items) findJournals(texts iter.Seq[string]) {
	if b.i.Journals == nil {
		return
	}
	all, err := gather(budget.Of(b.ctx), texts)
	if err != nil || len(all) == 0 {
		b.unfound = err
		return
	}
	all = append(all, b.r.tokens...)
	slices.Sort(all)
	if b.journals, err = b.i.journalsOf(b.ctx, b.r, slices.Compact(all)); err != nil {
		b.unfound = unasked(err)
		b.denied.note(err, b.unfound)
	}
}

// roomOfToken is the memory for one token while its journal is looked up: in lists of what is asked, and in maps of what was found.
const roomOfToken = 160

// gather is what texts name, each token once, in memory that it takes from room. Texts of nonsense are left out: their items are told.
func gather(room *budget.Account, texts iter.Seq[string]) (all fencing.Tokens, err error) {
	counted := 0 // of all, which are in order
	count := func() error {
		slices.Sort(all)
		all = slices.Compact(all)
		before := counted
		counted = len(all)
		return room.Take(int64(counted-before) * roomOfToken)
	}
	for text := range texts {
		tokens, err := fencing.Tokens(nil).With([]byte(text))
		if err != nil {
			continue
		}
		if all = append(all, tokens...); len(all) > 2*counted+1000 { // mostly the same ones
			if err := count(); err != nil {
				return nil, err
			}
		}
	}
	return all, count()
}

// tokens are what the items name.
func (b *items) tokens() iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range b.all {
			if t := b.all[k].Token; t != "" && !yield(t) {
				return
			}
		}
	}
}

// journalOfItem is the journal of an item's tokens; nil where none has one.
func (b *items) journalOfItem(it *item) (journal.Journal, error) {
	switch {
	case it.Token == "":
		return b.r.journal, nil
	case b.unfound != nil:
		return nil, b.unfound
	}
	tokens, err := b.r.tokensOf(budget.Of(b.r.Context()), &it.Item)
	if err != nil || b.journals == nil {
		return nil, err
	}
	return b.journals.Of(tokens)
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
