package intercept

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"optimist/internal/api"
	"optimist/internal/bulk"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/journal"
	"optimist/internal/large"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/wire"
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
	// asked is about how many names the engine was to be asked.
	asked atomic.Int64
	// journals are those of the tokens that items name themselves, and unfound is why they couldn't be found: see findJournals.
	journals Journals
	unfound  error
	epoch    session.Epoch
	stamps   bool // documents may have stamps in them
	// refreshes says that the engine is to refresh with each request, as far as the client wants that.
	refreshes bool
	// rounds is how many more requests, one after the other, the bulk may need because it names documents several times. Negative: it
	// needed more than that.
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
	rule    *rule.Rule // nil: none takes it
	skipped *rule.Rule // whose transform isn't applied, because the item goes as it is; nil: there is none
	course  course
	queued  bool                        // it waits for items of the same document
	series  *session.Series             // of these items; nil: there are no others
	work    *work                       // while package write writes it
	journal journal.Journal             // of the lock under which it is written; nil: there is none
	wait    func() (bulk.Result, error) // of one that isn't guarded
	res     bulk.Result
	account outcome.Outcome
	wrote   session.Unanswered // of one that package write has written
	err     error              // instead of res
}

// course is how an item gets to the engine.
type course uint8

const (
	asItIs   course = iota
	byRule          // as it is, because its rule says so
	retrying        // as it is, but for the rule's retry_on_conflict
	guarded         // package write writes it
)

// named is what the items of a bulk need to know of an index, by the name that they give it.
type named struct {
	name  string
	rules [api.Kinds]ruled
	index catalog.Index
	asked sync.Once
	err   error
	known bool // index is what the engine has said
	// fresh says that the engine was asked just now, and that there is such an index: the writes needn't ask again.
	fresh bool
	// guarded says that an item of the index is guarded.
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

// forget leaves the room to other items.
func (b *items) forget() {
	clear(b.all) // what nobody uses holds no bodies
	b.all = b.all[:0]
}

// leaveRoom gives the room back once the bulk has its answer. A bulk that ends in a panic doesn't: something may still be at work in it.
func (b *items) leaveRoom() {
	m := b.room
	b.room = nil
	if m == nil || cap(b.all) > keptItems {
		return
	}
	b.forget()
	clear(m.places)
	clear(m.single)
	clear(m.queues)
	m.items, m.single, m.queues, b.all = b.all, m.single[:0], m.queues[:0], nil
	b.i.rooms.Put(m)
}

// read reads until there are so many items, or no more. The error is bulk.ErrUnreadable.
func (b *items) read(reader *bulk.Reader, most int) error {
	var text large.Work
	defer text.End()
	for len(b.all) < most {
		if len(b.all)%lookedAt == 0 {
			text.Turn(len(reader.Rest()))
		}
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
		if b.all[k].course == guarded {
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

// indexOf is what the engine says of the index; asked once. The error is the items' answer. Once the engine has refused the client's
// credentials, it isn't asked about further names: a small bulk may have hundreds. Where it is asked with optimist's own credentials, it
// can't refuse the client's. So it is asked who the client is before the second name.
func (b *items) indexOf(n *named) (catalog.Index, error) {
	n.asked.Do(func() {
		if b.i.OwnAuth && b.r.Rewritable() && b.asked.Add(1) == 2 {
			b.askWho()
		}
		if refused := b.denied.index.Load(); refused != nil {
			n.index = *refused
			n.index.Name = n.name
			return
		}
		var err error
		if n.index, err = b.i.catalog.Resolve(b.ctx, b.r.Asker(), n.name, 0); err != nil {
			n.err = unasked(err)
		}
		if n.known = n.err == nil; n.known && n.index.Stranger {
			b.denied.index.Store(&n.index)
		}
	})
	return n.index, n.err
}

// askWho has the engine asked about no further names if it doesn't know the client. It asks by a bulk of no items: a client may be allowed
// to write bulks, and nothing else, and is guarded all the same.
func (b *items) askWho() {
	refused, err := b.i.refusalOf(b.ctx, b.r, b.i.bulkers, http.MethodPost, string(b.r.Op().Path))
	if err != nil || refused == nil {
		return
	}
	refused.Release()
	b.denied.index.Store(&catalog.Index{Unknown: outcome.ReasonMetadata, Stranger: true})
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
		if it.err == nil && it.course != guarded {
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
