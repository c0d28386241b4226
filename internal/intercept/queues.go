package intercept

import (
	"net/http"
	"slices"
)

// queues are the items that are guarded, or are of a document of which another item is, those of one document in one queue, in their
// order.
func (b *items) queues() (queues [][]*item) {
	const unqueued = -1
	at, alone := b.room.places, slices.Grow(b.room.single, len(b.all)) // alone has room for queues of one item
	queues = b.room.queues
	for k := range b.all {
		if it := &b.all[k]; it.course == guarded && it.ID != "" {
			at[b.document(it)] = unqueued
		}
	}
	for k := range b.all {
		it := &b.all[k]
		if it.err != nil || it.course != guarded && (it.ID == "" || len(at) == 0) {
			continue
		}
		d := b.document(it)
		place, shared := at[d]
		switch shared = shared && it.ID != ""; {
		case !shared && it.course != guarded:
			continue
		case shared && place != unqueued:
			queues[place] = append(queues[place], it)
		default:
			if shared {
				at[d] = len(queues)
			}
			alone = append(alone, it)
			queues = append(queues, alone[len(alone)-1:len(alone):len(alone)])
		}
		it.queued = true
	}
	b.room.single, b.room.queues = alone, queues
	return queues
}

// document is what the items of one document have in common. Two documents of one id that differ in their routing count as one: they go
// one after the other, whatever the routing is that an alias brings.
type document struct{ index, id string }

func (b *items) document(it *item) document {
	name := it.named.name
	if it.named.guarded || len(b.names) > 1 { // an item that isn't guarded may be of a guarded one's document, by another name
		if ix, err := b.indexOf(it.named); err == nil && ix.Name != "" {
			name = ix.Name
		}
	}
	return document{name, it.ID}
}

// again reports whether the item still conflicts, after the engine has tried as often as the rule says: it is tried further, as a request
// of its own is.
func (it *item) again() bool {
	return it.course == retrying && it.err == nil && it.res.Status == http.StatusConflict
}

// conflicted are the items that are to be tried again, each in a queue of its own. Where there are others of its document, which may have
// come behind it and been written, the conflict is the answer.
func (b *items) conflicted() (queues [][]*item) {
	of := map[document]int{}
	for k := range b.all {
		if b.all[k].again() {
			of[b.document(&b.all[k])] = 0
		}
	}
	if len(of) == 0 {
		return nil
	}
	for k := range b.all {
		if d := b.document(&b.all[k]); d.id != "" {
			of[d]++
		}
	}
	for k := range b.all {
		if it := &b.all[k]; it.again() && of[b.document(it)] == 1 {
			it.course = guarded
			queues = append(queues, []*item{it})
		}
	}
	return queues
}
