package intercept

import (
	"bytes"
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
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/journal"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
	"optimist/retry"
)

// items are those of a bulk of which optimist guards some. Each of these is written as a single write is, by package write, at the same
// time as the others; a bulk.Group has them travel together. The rest goes with the first of their requests, as it is.
type items struct {
	i      *Interceptor
	r      *request
	ctx    context.Context // the request's, or a part of it
	fields []wire.Field    // of an item, as if it came alone
	caller es.Caller
	all    []item
	group  bulk.Group
	names  map[string]*named
	denied *denial
	// journals are those of the tokens that items name themselves, and unfound is why they couldn't be found: see findJournals.
	journals Journals
	unfound  error
	epoch    session.Epoch
	stamps   bool // documents may have stamps in them
	// refreshes says that the engine is to refresh with each request, as far as the client wants that.
	refreshes bool
	// rounds is how many more requests, one after the other, the bulk may need because it names documents several times. Negative: it needed
	// more than that.
	rounds *int
	room   *room // nil: no item has been read
	// works has room for the writes of the items that are guarded from the start, and used counts those that are used.
	works []*works
	used  atomic.Int64
}

// room is the memory that the items of a bulk take, but for what becomes of them. One bulk uses it after the other.
type room struct {
	items  []item
	places map[document]int
	single []*item
	queues [][]*item
}

// keptItems is how many items a room has at most that is kept for another bulk.
const keptItems = 4096

// item is one of them.
type item struct {
	bulk.Item
	named   *named
	rule    *rule.Rule                  // nil: none takes it
	guarded bool                        // package write writes it
	retries bool                        // it goes as it is, but for the rule's retry_on_conflict
	passes  bool                        // its rule says that it goes as it is
	queued  bool                        // it waits for items of the same document
	series  *session.Series             // of these items; nil: there are no others
	done    bool                        // it has its result, or an error
	work    *work                       // while package write writes it
	journal journal.Journal             // of the lock under which it is written; nil: there is none
	wait    func() (bulk.Result, error) // of one that isn't guarded
	res     bulk.Result
	account outcome.Outcome
	wrote   session.Unanswered // of one that package write has written
	err     error              // instead of res
}

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

// named is what the items of a bulk need to know of an index, by the name that they give it.
type named struct {
	name  string
	rules [api.Kinds]ruled
	index catalog.Index
	asked sync.Once
	err   error
	known bool // index is what the engine has said
	// fresh says that this was just now, and that there is such an index: the writes needn't ask again.
	fresh bool
	// guarded says that an item of it is.
	guarded bool
}

type ruled struct {
	rule  *rule.Rule
	known bool
}

func (i *Interceptor) newItems(r *request) *items {
	return &items{i: i, r: r, ctx: r.Context(), names: map[string]*named{}, epoch: i.Sessions.Epoch(), stamps: i.Rules.Rules().Stamps(),
		refreshes: true, denied: &denial{}, rounds: new(mostRounds)}
}

// takeRoom makes room for so many items.
func (b *items) takeRoom(items int) {
	if b.room, _ = b.i.rooms.Get().(*room); b.room == nil {
		b.room = &room{places: map[document]int{}}
	}
	b.all = slices.Grow(b.room.items, items)
}

// leaveRoom gives the room back once the bulk has its answer. A bulk that ends in a panic doesn't: something may still be at work in it.
func (b *items) leaveRoom() {
	m := b.room
	if b.room = nil; m == nil || cap(b.all) > keptItems {
		return
	}
	clear(b.all) // what nobody uses holds no bodies
	clear(m.places)
	clear(m.single)
	clear(m.queues)
	m.items, m.single, m.queues, b.all = b.all[:0], m.single[:0], m.queues[:0], nil
	b.i.rooms.Put(m)
}

// read reads at most so many items. The error is bulk.ErrUnreadable.
func (b *items) read(reader *bulk.Reader, most int) error {
	for len(b.all) < most {
		it, ok, err := reader.Next()
		if err != nil || !ok {
			return err
		}
		b.all = append(b.all, item{Item: it, named: b.nameOf(it.Index)})
	}
	return nil
}

// defaults are what a bulk says of all its items. reason is why the items can't be guarded by that: the routing can't be read, or it is too
// long to be said again for each item.
func (i *Interceptor) defaults(r *request) (d bulk.Defaults, reason string) {
	op := r.Op()
	d = bulk.Defaults{Index: r.Index(), Params: op.Query, Types: i.Types() == api.HasTypes}
	if op.Typed {
		d.Type = api.Name(op.Type)
	}
	var ok bool
	if d.Routing, ok = r.Routing(); !ok {
		return d, outcome.ReasonFormat
	}
	for _, flag := range [...]string{"pretty", "human", "error_trace"} {
		if v, _ := uri.Param(op.Query, flag); len(v) > 0 && string(v) != "true" && string(v) != "false" {
			return d, outcome.ReasonFormat // the engine refuses it
		}
	}
	if !d.Fit() {
		return d, outcome.ReasonTooLarge
	}
	return d, ""
}

// leastItem is the length of the shortest action and the end of its line, in bytes.
const leastItem = len(`{"index":{}}`) + 1

// mostItems is how many items a bulk has at most. Each has a line of its own, which isn't empty.
func mostItems(body []byte) int { return min(bytes.Count(body, []byte("\n")), len(body)/leastItem) + 1 }

// likelyItems is how many items a bulk has in all likelihood. All but deletes have a second line, with their document. If a bulk has more,
// its items are copied while they are read: a small compressed bulk of deletes took half its processor time for that.
func likelyItems(body []byte) int {
	most := mostItems(body)
	return min(most, (most+bytes.Count(body, []byte(`"delete"`)))/2+1)
}

// guarded is how many items package write writes.
func (b *items) guarded() (n int) {
	for k := range b.all {
		if b.all[k].guarded {
			n++
		}
	}
	return n
}

func (b *items) nameOf(index string) *named {
	n := b.names[index]
	if n == nil {
		n = &named{name: index}
		b.names[index] = n
	}
	return n
}

// indexOf is what the engine says of the index; asked once. Once the engine has refused the client's credentials, it isn't asked about
// further names: a small bulk may have hundreds.
func (b *items) indexOf(n *named) (catalog.Index, error) {
	n.asked.Do(func() {
		if refused := b.denied.index.Load(); refused != nil {
			n.index = *refused
			n.index.Name = n.name
			return
		}
		n.index, n.err = b.i.catalog.Resolve(b.ctx, b.r.Asker(), n.name, 0)
		if n.known = n.err == nil; n.known && n.index.Stranger {
			b.denied.index.Store(&n.index)
		}
	})
	return n.index, n.err
}

// ruleOf is the rule that takes the item.
func (b *items) ruleOf(it *item) (*rule.Rule, error) {
	known := &it.named.rules[it.Kind]
	if known.known {
		return known.rule, nil
	}
	a := rule.Target{Index: it.Index, Kind: it.Kind, Fields: b.r.Head().Fields}
	ru, err := match(b.i.Rules.Rules(), &a, func() (catalog.Index, error) { return b.indexOf(it.named) })
	if err != nil {
		return nil, err
	}
	*known = ruled{ru, true}
	return ru, nil
}

// looked is what look has found.
type looked struct {
	found  bool        // an item that has to be dealt with here
	reason string      // why none has; empty: a rule takes some, and there is nothing to do for it
	of     []bulk.Name // all items' names, of a client of whom something may be known
}

// look goes through the items until it finds one that has to be dealt with here. It keeps none of them: most bulks have no such item, and
// then nobody needs them. The error is bulk.ErrUnreadable.
func (b *items) look(reader *bulk.Reader) (l looked, err error) {
	known := b.r.Client().Known
	l.reason = untaken
	var it item
	for {
		it = item{}
		var ok bool
		if it.Item, ok, err = reader.Next(); err != nil || !ok {
			return l, err
		}
		it.named = b.nameOf(it.Index)
		b.chooseFor(&it)
		switch {
		case it.isOurs():
			return looked{found: true}, nil
		case it.passes:
			l.reason = outcome.ReasonBulk
		case it.rule != nil && l.reason == untaken:
			l.reason = ""
		}
		if known {
			l.of = append(l.of, bulk.Name{Verb: it.Verb, Index: it.Index, ID: it.ID, Routing: it.Routing})
		}
	}
}

// isOurs reports whether the item has to be dealt with here.
func (it *item) isOurs() bool { return it.guarded || it.retries || it.err != nil }

// choose finds out which items are guarded. Items of one document go one after the other if one of them is guarded: see queues.
func (b *items) choose() {
	for k := range b.all {
		it := &b.all[k]
		if b.chooseFor(it); it.err != nil {
			it.account.Kind = outcome.Refused
		}
	}
}

func (b *items) chooseFor(it *item) {
	if it.rule, it.err = b.ruleOf(it); it.err != nil {
		return
	}
	it.Elsewhere = it.Elsewhere && !b.pathIsIndex()
	if it.journal, it.err = b.journalOfItem(it); it.err != nil || it.journal != nil {
		if it.err == nil {
			b.forJournal(it)
		}
		return
	}
	switch {
	case b.i.Rules.Effective(it.rule) != rule.Guard:
		it.rule = nil
	case it.rule.Bulk == rule.BulkRefuse:
		it.err = refusedBy(it.rule)
	case it.rule.Bulk == rule.BulkPass:
		it.rule, it.passes = nil, true
	case it.Odd && it.rule.Locks != nil:
		it.err = unguardable(it.rule, outcome.ReasonFormat)
	case it.Elsewhere && (it.rule.Transform != nil || it.rule.Unknown == rule.UnknownReject || it.rule.RejectLost):
		it.err = elsewhere(it)
	default:
		it.PassRejected = it.rule.PassRejected
		it.guarded, it.err = b.needsGuard(it)
		it.named.guarded = it.named.guarded || it.guarded
		it.retries = !it.guarded && !it.Elsewhere && it.err == nil && it.wantsRetries()
	}
}

// refusedBy is what an item gets whose rule refuses items of bulks.
func refusedBy(ru *rule.Rule) error {
	return &proxy.Failure{Status: http.StatusBadRequest, Type: "illegal_argument_exception",
		Reason: "rule [" + ru.Name + "] refuses items of a bulk: write this document by a request of its own"}
}

// elsewhere is what an item gets if its rule may refuse writes, or changes them, and nobody can tell which document it is.
func elsewhere(it *item) error {
	return &proxy.Failure{Status: http.StatusBadRequest, Type: "illegal_argument_exception",
		Reason: "the path names another index than the action, [" + it.Index + "], and there is no index of the path's name: rule [" +
			it.rule.Name + "] needs the action's index in the path, or none"}
}

// pathIsIndex reports whether the path names an index. If it doesn't, it may be the prefix by which a gateway tells tenants apart. Then an
// item that names an index itself can't be told from another tenant's.
func (b *items) pathIsIndex() bool {
	ix, err := b.indexOf(b.nameOf(b.r.Index()))
	return err != nil || ix.UUID != "" // what can't be asked is guarded
}

// wantsRetries reports whether the item is an update that the engine is to try again after a conflict, as the rule says.
func (it *item) wantsRetries() bool {
	return it.rule != nil && it.Kind == api.Update && it.rule.RetryOnConflict > 0 && !it.Guarded && !it.Retries && !it.Odd
}

// needsGuard reports whether there is anything to be done about an item: most items of most bulks are new documents, or are of clients
// that have read nothing.
func (b *items) needsGuard(it *item) (bool, error) {
	ru := it.rule
	switch {
	case it.Odd:
		return false, nil
	case it.Token != "", ru.Locks != nil:
		return true, nil
	case it.Elsewhere:
		return false, nil
	case it.Kind != api.Delete && (ru.Transform != nil || b.stamps && b.i.watcher.Stamper(&b.r.Request, it.Index, rule.Observe) != nil):
		return true, nil
	case it.Kind == api.IndexAuto:
		return false, nil
	case ru.WriteID != "" && (it.Kind == api.Index || it.Kind == api.Create):
		return true, nil // it leaves a mark
	case ru.DeadLetters, ru.Unknown == rule.UnknownFetch, ru.Unknown == rule.UnknownReject, ru.RejectLost, it.Guarded && ru.MergeExplicit:
		return true, nil
	case ru.HasStrategies && it.wantsRetries():
		return true, nil // it counts that they weren't used
	}
	return b.mayHaveBase(it)
}

// mayHaveBase reports whether the session may know a base for the item.
func (b *items) mayHaveBase(it *item) (bool, error) {
	c := b.r.Client()
	if !it.rule.Session || !c.Known {
		return false, nil
	}
	ix, err := b.indexOf(it.named)
	if err != nil {
		return false, err
	}
	if it.Kind == api.Create && c.Session.IsNamed() {
		return true, nil // it may write its next change from memory
	}
	mayHave := func(ref doc.Ref) bool { return b.i.Sessions.MayHaveBase(c.Session, ref) }
	ref := ix.Ref(it.Routing, it.ID)
	if mayHave(ref) {
		return true, nil
	}
	_, former := ix.Former(ref, mayHave)
	return former, nil
}

// open makes the group that the items travel in.
func (b *items) open() {
	r := b.r
	b.fields, b.caller = itemFields(r.Fields()), r.Caller()
	query := uri.Without(nil, r.Op().Query, "filter_path", "pretty", "format")
	if !b.refreshes {
		query = uri.Without(nil, query, "refresh")
	}
	policy, behind := b.patience()
	b.group = bulk.Group{Client: r.Place(), Upstream: b.i.Carrier, Documents: b.i.Documents, Target: uri.WithParams(r.Op().Path, query),
		Fields: groupFields(r.Fields()), Params: b.caller.Params, Timeout: bulkTimeout,
		Context: b.ctx, Retry: policy, Background: behind}
}

// run writes all items.
func (b *items) run() {
	ctx := b.ctx
	b.open()
	defer b.group.Close()
	b.takeWorks()
	queues := b.queues() // before: it marks those that wait for others
	for _, n := range b.names {
		n.fresh = n.known && n.index.Exists()
	}
	for k := range b.all {
		it := &b.all[k]
		if it.err == nil && !it.guarded {
			b.prepare(it)
		}
		if it.err == nil && !it.queued {
			it.wait = b.group.Add(&it.Item)
		}
	}
	b.work(ctx, queues)
	for k := range b.all {
		if it := &b.all[k]; it.wait != nil {
			b.passed(it, it.wait)
		}
	}
	if again := b.conflicted(); len(again) > 0 && !wire.PeerLeft(ctx) {
		b.work(ctx, again)
	}
	if err := b.group.Panic(); err != nil {
		panic(err.Error())
	}
}

// prepare makes the text of an item that isn't guarded what the engine is to get.
func (b *items) prepare(it *item) {
	if it.retries {
		it.Text = it.Retrying(it.rule.RetryOnConflict)
	}
	if b.stamps {
		it.Text = b.i.bulkWithoutStamps(b.r, it.Text)
	}
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
	if hasRound && !it.guarded && !it.done && it.rule != nil && it.err == nil {
		if it.guarded = it.series.Known() && !it.Odd && !it.Elsewhere; !it.guarded { // else it is based on the one before it
			it.guarded, it.err = b.needsGuard(it) // the one before it may have left a base
			it.guarded = it.guarded && it.err == nil
		}
	}
	if it.err == nil && !it.done {
		it.err = b.denied.err()
	}
	switch {
	case it.err != nil:
		it.account.Kind = outcome.Refused
		return
	case !hasRound:
		it.err, it.account.Kind = tooOften, outcome.NotSent
		return
	case !it.guarded && !it.done:
		b.passed(it, func() (bulk.Result, error) { return b.group.Pass(&it.Item) })
		if !it.again() {
			return
		}
	}
	b.begin(ctx, it, nil)
}

// mayPark reports whether the item's write waits for nothing, in all likelihood, but for its own answer.
func (it *item) mayPark() bool {
	return it.guarded && it.journal == nil && it.rule.Locks == nil && it.Kind != api.Create && it.Kind != api.IndexAuto
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
		var f *outcome.Failure
		if it.err = failure(err); errors.As(err, &f) {
			it.err = failure(f.Err)
		}
		b.denied.note(err, it.err)
		return
	}
	it.res = bulk.Result{Status: a.Status, Body: a.Body}
}

// leave ends the work on an item. It is cleared at once, while it is in the processor's caches. The answer isn't released: the result is in
// its memory.
func (b *items) leave(it *item) {
	w := it.work
	it.work, it.wrote = nil, w.write.TakeUnanswered()
	w.room.End()
	*w = work{} // what nobody uses holds no bodies
}

// denial is the answer to a bulk's items after the engine has refused the client's credentials for one of them. The engine isn't asked
// for the others: a small compressed bulk may have a hundred thousand items. All goroutines of the bulk may use it.
type denial struct {
	of    atomic.Pointer[error]
	index atomic.Pointer[catalog.Index] // the first one about which the engine has refused to say anything to the client
}

// err is what the next item gets; nil if the engine has refused no credentials.
func (d *denial) err() error {
	if err := d.of.Load(); err != nil {
		return *err
	}
	return nil
}

// note keeps what an item gets, if err says that the engine has refused the credentials (401). A 403 says nothing about the other items.
func (d *denial) note(err, gets error) {
	if es.IsStranger(err) {
		d.of.CompareAndSwap(nil, &gets)
	}
}

// deniedWhole is why nothing of the bulk was done, where the engine has refused the client's credentials for each of its items; else nil.
// The client gets one answer, as from the engine. account counts the items then.
func (b *items) deniedWhole(account *outcome.Items) error {
	denied := b.denied.err()
	if denied == nil {
		return nil
	}
	var f *proxy.Failure // one for all items: errors.As would allocate each
	for k := range b.all {
		if !errors.As(b.all[k].err, &f) || f.Status != http.StatusUnauthorized {
			return nil
		}
	}
	for k := range b.all {
		account.Add(&b.all[k].account)
	}
	return denied
}

// passed waits for what became of an item that went as it was.
func (b *items) passed(it *item, wait func() (bulk.Result, error)) {
	it.account = outcome.Outcome{Kind: outcome.Passed, Attempts: 1}
	if it.retries {
		it.account.Kind = outcome.Retried
	}
	it.done = true
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

// answer gives the client what became of all items.
func (b *items) answer(began time.Time) {
	r := b.r
	if err := context.Cause(r.Context()); err != nil && !b.anySent() {
		r.Fail(err)
		return
	}
	var account outcome.Items
	if err := b.deniedWhole(&account); err != nil {
		b.noteAnswers()
		r.Fail(err, itemsField(&account))
		return
	}
	s := b.group.Summary()
	s.Took = time.Since(began)
	room := roomOfSummary
	for k := range b.all {
		room += len(b.all[k].res.Body) + roomOfElement
	}
	out := make([]byte, roomOfSummary, room)
	for k := range b.all {
		if k > 0 {
			out = append(out, ',')
		}
		out = b.appendItem(out, k, &account, &s)
	}
	head := s.Append(nil) // which says whether any item failed
	body := append(out[roomOfSummary-len(head):], "]}"...)
	copy(body, head)
	body = respond.Filtered(r.Op().Query, body)
	whole := b.refusal()
	b.noteAnswers()
	field := itemsField(&account)
	if whole != nil {
		_ = r.Answer(whole.Status, append(whole.Fields, field), whole.Body)
		return
	}
	if head := b.group.Head(); head != nil {
		_ = r.Answer(http.StatusOK, append(head, field), body)
		return
	}
	_ = r.AnswerOwn(http.StatusOK, []wire.Field{jsonField, field}, body)
}

// roomOfSummary is more bytes than a bulk.Summary takes, and roomOfElement what an element of the answer takes beyond the body of a single
// write's answer.
const (
	roomOfSummary = 128
	roomOfElement = 32
)

// appendItem appends the element of an item's result, and counts it.
func (b *items) appendItem(dst []byte, k int, account *outcome.Items, s *bulk.Summary) []byte {
	it := &b.all[k]
	account.Add(&it.account)
	dst, failed := it.AppendItem(dst, it.result())
	s.Failed = s.Failed || failed
	return dst
}

// noteAnswers ends what the session holds for the items until they have their answer. It comes before that: a client that has its answer
// may close the connection at once.
func (b *items) noteAnswers() {
	for k := range b.all {
		b.all[k].wrote.NoteAnswer()
	}
	for _, some := range b.works {
		b.i.works.Put(some)
	}
	b.works = nil
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

var jsonField = wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")}

func itemsField(account *outcome.Items) wire.Field {
	return wire.Field{Name: []byte("Optimist-Outcome"), Value: account.Append(nil)}
}

// refusal is the engine's answer where that refuses the whole bulk, and nothing of it was done.
func (b *items) refusal() *bulk.Refusal {
	whole := b.group.Refusal()
	if whole == nil {
		return nil
	}
	for k := range b.all {
		if it := &b.all[k]; it.err != nil || it.res.Status != whole.Status || !bytes.Equal(it.res.Body, whole.Body) {
			return nil
		}
	}
	return whole
}

// result is what became of the item, as an answer to it alone would say it.
func (it *item) result() bulk.Result {
	if it.err == nil {
		return it.res
	}
	f := proxy.FailureOf(it.err, false)
	switch {
	case f != nil:
	case errors.Is(it.err, context.Canceled), errors.Is(it.err, proxy.ErrLeft):
		f = clientLeft
	default:
		f = &proxy.Failure{Status: http.StatusInternalServerError, Type: proxy.TypeInternal, Reason: it.err.Error()}
	}
	return bulk.Result{Status: f.Status, Body: f.Append(nil)}
}

// clientLeft is what an item gets that wasn't sent, because the client had left by then. A client that has only ended its sending side
// looks the same, and still reads the answer.
var clientLeft = &proxy.Failure{Status: http.StatusServiceUnavailable, Type: "client_left",
	Reason: "the client closed its connection, or its sending side, before the item was sent: nothing of it was written"}

// anySent reports whether the engine may have done anything for any item.
func (b *items) anySent() bool {
	for k := range b.all {
		if it := &b.all[k]; it.err == nil || it.account.Kind == outcome.Unknown {
			return true
		}
	}
	return false
}

// ofBulks are fields that count for the bulk as a whole, and neither for an item nor for a bulk of other items.
var ofBulks = []string{"content-length", "content-encoding", "expect", "if-match", "if-none-match", "accept-encoding"}

// itemFields are the fields of an item, as if it came alone.
func itemFields(fields []wire.Field) []wire.Field {
	out := slices.Clone(wire.Without(fields, ofBulks...))
	for k := range out {
		if wire.EqualFold(out[k].Name, "content-type") {
			out[k].Value = bytes.ReplaceAll(bytes.ToLower(out[k].Value), []byte("x-ndjson"), []byte("json"))
		}
	}
	return out
}

// groupFields are those of a bulk that is sent on.
func groupFields(fields []wire.Field) []wire.Field {
	return slices.DeleteFunc(slices.Clone(wire.Without(fields, ofBulks...)), func(f wire.Field) bool { return wire.IsForOptimist(f.Name) })
}
