package intercept

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
	"optimist/retry"
)

// works are used by one bulk after the other: a work is large.
type works [8]work

// work is what the write of one item needs, until it ends.
type work struct {
	write write.Request
	op    api.Op
	way   bulk.Way
	room  budget.Account
	item  *item
	wave  *wave // that the item is written in, if another goroutine goes on with it
}

// Resume goes on with the item's write, whose answer is here.
func (w *work) Resume() { w.wave.end(w.item) }

// prepare makes the text of an item that isn't guarded what the engine is to get.
func (b *items) prepare(it *item) {
	if it.course == retrying {
		it.Text = it.Retrying(it.rule.RetryOnConflict)
	}
	it.Text = b.i.bulkWithout(ours{tokens: it.Token != "", stamps: b.stamps}, b.r, it.Text)
}

// atOnce is how many documents of a bulk are written at the same time: the memory that writes under way take is that of so many.
const atOnce = 1000

// work writes the items of each queue, one after the other. A panic becomes the caller's. What hasn't been sent when the client has left
// never is. That client may have come again, and have written the documents since.
func (b *items) work(ctx context.Context, queues [][]*item) {
	waited := false
	if len(queues) > 1 && b.denied.index.Load() != nil { // if the engine refuses the first one, too, it isn't asked for the others
		b.workWave(ctx, queues[:1], false)
		queues, waited = queues[1:], true
	}
	for wave := range slices.Chunk(queues, atOnce) {
		b.workWave(ctx, wave, waited && wire.PeerLeft(ctx))
		waited = true
	}
}

// mostRounds bounds how many requests to the engine a bulk may need because it names documents several times: each item waits for the one
// before it of its document. A small compressed bulk may name one document a hundred thousand times. Each window of a bulk that comes as a
// stream may have windowRounds more.
const (
	mostRounds   = 1000
	windowRounds = 10
)

// tooOften is what an item gets that would need a round too many. Nothing of it was sent, and the client may send it again.
var tooOften = &proxy.Failure{Status: http.StatusTooManyRequests, Type: "es_rejected_execution_exception", Reason: fmt.Sprintf(
	"the bulk names documents more than %d times, and their items have to be written one after the other. Send this item again", mostRounds)}

// takeRounds is how many items of each queue may be written. Once the rounds are used up, none of a later queue may: it could hold an item
// of a document of which one before it wasn't sent.
func (b *items) takeRounds(queues [][]*item) (most int) {
	longest := 1
	for _, queue := range queues {
		longest = max(longest, len(queue))
	}
	most = min(longest, 1+*b.rounds)
	if *b.rounds -= longest - 1; *b.rounds < 0 {
		*b.rounds = -1
	}
	return most
}

func (b *items) workWave(ctx context.Context, queues [][]*item, gone bool) {
	most := b.takeRounds(queues)
	b.group.Begin(len(queues))
	w := &wave{b: b, ctx: ctx}
	w.open.Add(len(queues))
	for _, queue := range queues {
		if !gone && most > 0 && len(queue) == 1 && queue[0].mayPark() {
			w.single = append(w.single, queue[0])
			continue
		}
		go w.step(func() (ended bool) {
			b.performAll(ctx, queue, most, gone)
			return true
		})
	}
	bulk.InTurn(len(w.single), func(t *bulk.Turns, k int) { w.begin(w.single[k], t) })
	w.open.Wait()
	for _, n := range b.names {
		n.fresh = false // the engine was waited for
	}
	if text := w.failed.Load(); text != nil {
		panic(*text)
	}
}

// wave is the work on some items that are written at the same time.
type wave struct {
	b      *items
	ctx    context.Context
	single []*item                // that need no goroutine of their own
	open   sync.WaitGroup         // the queues that have items to be written
	failed atomic.Pointer[string] // a panic
}

// step does some of the work on a queue. A panic ends the queue, as f does if it returns true.
func (w *wave) step(f func() (ended bool)) {
	ended := true
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("%v\n%s", p, debug.Stack())
			w.failed.Store(&text)
		}
		if ended {
			w.b.group.End()
			w.open.Done()
		}
	}()
	ended = f()
}

// begin begins the write of an item that is alone in its queue. Nobody waits for the engine's answer: end goes on with the item then.
func (w *wave) begin(it *item, turns *bulk.Turns) {
	w.step(func() (ended bool) {
		if it.err = w.b.denied.err(); it.err != nil {
			it.account.Kind = outcome.Refused
			return true
		}
		if ended = w.b.begin(w.ctx, it, turns); !ended {
			it.work.item, it.work.wave = it, w
			it.work.way.Launch(it.work)
		}
		return ended
	})
}

// end ends the write of an item whose answer is here.
func (w *wave) end(it *item) {
	w.step(func() (ended bool) {
		w.b.end(it)
		return true
	})
}

// patience is for items that the engine rejects for having too much to do, and behind says whether other writes go before: as the rule
// of the first item says.
func (b *items) patience() (p retry.Policy, behind bool) {
	for k := range b.all {
		if ru := b.all[k].rule; ru != nil {
			return retry.Policy(ru.Retry), background(b.fields, ru)
		}
	}
	return retry.Policy{}, false
}

// bulkTimeout bounds how long a bulk waits for its answer. The engine itself gives up on each item after the request's timeout, a minute,
// but goes through them one after the other.
const bulkTimeout = 10 * time.Minute

// performAll performs the items of a queue, of which the bulk has rounds for so many. Each is based on what the one before it has left.
// gone says that the client has left.
func (b *items) performAll(ctx context.Context, queue []*item, rounds int, gone bool) {
	var series *session.Series
	if len(queue) > 1 {
		series = new(session.Series)
	}
	for k, it := range queue {
		it.series = series
		if gone = gone || k > 0 && wire.PeerLeft(ctx); gone && it.err == nil {
			it.err = proxy.ErrLeft
		}
		b.perform(ctx, it, k < rounds)
		series.End(it.err == nil && it.res.Status < http.StatusMultipleChoices, it.account.Kind == outcome.Unknown)
	}
}

// perform has package write write one item, if it is guarded, and the bulk has a round for it.
func (b *items) perform(ctx context.Context, it *item, hasRound bool) {
	if hasRound && it.course != guarded && it.rule != nil && it.err == nil {
		if it.series.Known() && !it.Odd && !it.Elsewhere {
			it.course = guarded // it is based on the one before it
		} else {
			it.err = b.guardIfNeeded(it) // the one before it may have left a base
		}
	}
	if it.err == nil {
		it.err = b.denied.err()
	}
	switch {
	case it.err != nil:
		it.account.Kind = outcome.Refused
		return
	case !hasRound:
		it.err, it.account.Kind = tooOften, outcome.NotSent
		return
	case it.course != guarded:
		b.passed(it, func() (bulk.Result, error) { return b.group.Pass(&it.Item) })
		if !it.again() {
			return
		}
	}
	b.begin(ctx, it, nil)
}

// mayPark reports whether the item's write waits for nothing, in all likelihood, but for its own answer.
func (it *item) mayPark() bool {
	return it.course == guarded && it.journal == nil && it.rule.Locks == nil && it.Kind != api.Create && it.Kind != api.IndexAuto
}

// begin has package write write an item. It reports whether that has ended. With turns it may return before: then the item has to be
// launched.
func (b *items) begin(ctx context.Context, it *item, turns *bulk.Turns) (ended bool) {
	it.wrote.NoteAnswer() // of a write before
	it.work = b.newWork()
	w := &it.work.write
	// The account is its own: items are written at the same time, and each gives back what its tries have taken.
	ctx = budget.PartOf(ctx, &it.work.room)
	ended = true
	defer func() {
		if ended {
			b.leave(it)
		}
	}()
	it.work.way.Open(&b.group, &it.Item, turns)
	method, target := it.work.way.Request()
	api.Parse(method, target, &it.work.op)
	c := b.r.Client()
	w.Request = base.Request{Op: &it.work.op, Fields: b.fields, Rule: it.rule, Session: c.Session, Anonymous: !c.Known, Caller: b.caller,
		Realm: c.Realm, Names: it.Names(), Way: &it.work.way, Series: it.series}
	w.Method, w.Body, w.Route, w.Client = method, it.Source, c.Route, &b.r.Request
	w.Piped, w.OnlyInBulk = it.Piped, it.OnlyInBulk
	w.Background = background(b.fields, it.rule)
	if it.journal != nil {
		w.Journal = gathered{it.journal, &b.group}
	}
	if turns != nil {
		w.Parker = &it.work.way
		if it.named.fresh {
			w.Found = &it.named.index
		}
	}
	if w.Tokens, it.err = b.r.tokensOf(budget.Of(b.r.Context()), &it.Item); it.err != nil {
		it.account.Kind = outcome.Refused
		return true
	}
	if it.err = b.i.takeStamp(ctx, b.r, w, it.Index, it.rule); it.err != nil {
		it.account.Kind = outcome.Refused
		return true
	}
	a, err := b.i.Writes.Do(ctx, w)
	if ended = !errors.Is(err, base.ErrParked); ended {
		b.note(it, a, err)
	}
	return ended
}

// end goes on with the write of an item whose answer is here, to its end.
func (b *items) end(it *item) {
	defer b.leave(it)
	a, err := b.i.Writes.Resume(&it.work.write)
	b.note(it, a, err)
}

// note keeps what has become of the write of an item.
func (b *items) note(it *item, a *respond.Answer, err error) {
	it.account = *it.work.write.Outcome()
	if err != nil {
		it.err = failure(err)
		b.denied.note(err, it.err)
		return
	}
	it.res = bulk.Result{Status: a.Status, Body: a.Body}
}

// leave ends the work on an item. It is cleared at once, while it is in the processor's caches. The answer isn't released: the result is in
// its memory.
func (b *items) leave(it *item) {
	w := it.work
	it.work, it.wrote = nil, w.write.Unanswered()
	w.room.End()
	*w = work{} // what nobody uses holds no bodies
}

// passed waits for what became of an item that went as it was.
func (b *items) passed(it *item, wait func() (bulk.Result, error)) {
	it.account = outcome.Outcome{Kind: outcome.Passed, Attempts: 1}
	if it.course == retrying {
		it.account.Kind = outcome.Retried
	}
	if it.skipped != nil {
		it.account.Untransformed = true
		b.i.Metrics.Untransformed.Inc(it.skipped.Name)
	}
	res, err := wait()
	switch {
	case err != nil:
		it.err = err
		if f := proxy.FailureOf(err, false); f != nil && f.Type == proxy.TypeUnknown {
			it.account.Kind = outcome.Unknown
		} else {
			it.account.Kind = outcome.NotSent
		}
		return
	case res.Status >= http.StatusInternalServerError:
		it.account.Kind = outcome.Unknown // the primary may have written, or a balancer have lost the engine's answer
	case b.r.Client().Known:
		did := es.ParseItem(res.Body)
		note := noting{b.i, b.r, b.epoch, func(string) { _, _ = b.indexOf(it.named) }}
		note.item(it.Verb, &did, bulk.Name{Index: it.Index, ID: it.ID, Routing: it.Routing})
	}
	it.res = res
}

// takeWorks makes room for the writes of the guarded items.
func (b *items) takeWorks() {
	for n := b.guarded(); len(b.works)*len(works{}) < n; {
		some, _ := b.i.works.Get().(*works)
		if some == nil {
			some = new(works)
		}
		b.works = append(b.works, some)
	}
}

// newWork is room for the write of an item.
func (b *items) newWork() *work {
	k := int(b.used.Add(1)) - 1
	if at := k / len(works{}); at < len(b.works) {
		return &b.works[at][k%len(works{})]
	}
	return &work{}
}
