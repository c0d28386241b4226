package session

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"optimist/internal/choice"
	"optimist/internal/viewcache"
)

// TestNoChangeOfAClientThatLeavesCountsTwice lets clients of one session read a document, write what they have made of it, leave
// at any moment, and send it again, once or several times, while writes are acknowledged, fail, or have an unknown outcome, in
// any order. No two send the same, each leaving is seen before the repeat comes, and each read is written back. Then no change
// may count twice, none that has counted be undone by another, and each write has a base.
//
// Who waits is woken in any order, too: the loop of take is played here, step by step.
func TestNoChangeOfAClientThatLeavesCountsTwice(t *testing.T) {
	times := 5
	if os.Getenv("E2E_LONG") == "1" {
		times = 200
	}
	var seen repeatTally
	for range times {
		rapid.Check(t, func(t *rapid.T) {
			c := &clock{t: time.Unix(1, 0)}
			s := New(Options{Rank: inHand, Now: c.now, Memory: 4 << 20})
			c.advance(maxAge)
			w := &repeatWorld{s: s, c: c, seen: &seen, count: map[string]int{}}
			for i := range rapid.IntRange(2, 4).Draw(t, "writers") {
				w.writers = append(w.writers, &repeatWriter{name: string(rune('a' + i))})
			}
			for range rapid.IntRange(20, 300).Draw(t, "steps") {
				w.step(t, func(names []string) string { return rapid.SampledFrom(names).Draw(t, "step") })
			}
			w.end(t)
		})
	}
	t.Logf("%+v", seen)
	f := flag.Lookup("rapid.checks")
	if f.Value.String() == f.DefValue && (seen.acknowledged < 500 || seen.waited < 300 || seen.inherited < 30 || seen.again < 500) {
		t.Error("that is too little for the test to mean much")
	}
}

// repeatTally is what the writers have met.
type repeatTally struct{ acknowledged, waited, inherited, again, doubtful, refused int }

// repeatWorld is the document, and those who write it.
type repeatWorld struct {
	s       *Store
	c       *clock
	seen    *repeatTally
	n       int64          // of the current revision
	count   map[string]int // how often each change counts in it
	late    []lateWrite
	writers []*repeatWriter
	tries   []*repeatTry // that aren't at their end
}

// lateWrite is one whose answer was lost, and which the engine may still do.
type lateWrite struct {
	guard int64
	after map[string]int
}

// repeatWriter makes one change after another.
type repeatWriter struct {
	name   string
	rounds int
	change string         // "": none is under way
	read   map[string]int // what it was made from
	sent   string
	last   *repeatTry // nil: not sent yet
	given  bool       // up: nobody waits for it any more
}

// repeatTry is one request.
type repeatTry struct {
	w      *repeatWriter
	change string
	sent   string
	ctx    context.Context
	leave  context.CancelFunc
	t      *selection
	done   <-chan struct{} // while it waits for its base
	base   *Base           // once it has one
	stored *Ack            // once it is written
	acked  bool            // committed, and not answered
	over   bool
}

func (w *repeatWorld) body(count map[string]int) string {
	b, err := json.Marshal(count)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// step does one of the things that can be done now.
func (w *repeatWorld) step(t *rapid.T, draw func([]string) string) {
	can := map[string]func(*rapid.T){}
	for _, wr := range w.writers {
		switch {
		case wr.change == "":
			can["read "+wr.name] = func(*rapid.T) { w.read(wr) }
		case wr.last == nil:
			can["send "+wr.name] = func(t *rapid.T) { w.send(t, wr) }
		case wr.last.ctx.Err() != nil && !wr.given:
			can["repeat "+wr.name] = func(t *rapid.T) { w.send(t, wr) }
			can["give up "+wr.name] = func(*rapid.T) { wr.given = true }
		case wr.given:
			can["go on "+wr.name] = func(*rapid.T) { wr.change = "" }
		default:
			can["leave "+wr.name] = func(*rapid.T) { w.c.advance(20 * time.Millisecond); wr.last.leave() }
		}
	}
	for i, x := range w.tries {
		name := fmt.Sprintf(" %s%d", x.w.name, i)
		switch {
		case x.done != nil:
			if closed(x.done) || x.ctx.Err() != nil {
				can["wake"+name] = func(t *rapid.T) { w.wake(t, x) }
			}
		case x.acked:
			can["answer"+name] = func(*rapid.T) { w.answer(x) }
		case x.stored != nil:
			can["acknowledge"+name] = func(*rapid.T) { w.acknowledge(x) }
		default:
			can["write"+name] = func(t *rapid.T) { w.write(t, x) }
			can["fail"+name] = func(*rapid.T) { w.fail(x) }
			can["lose"+name] = func(t *rapid.T) { w.lose(t, x) }
		}
	}
	if len(w.late) > 0 {
		can["late"] = w.lateOne
	}
	can["glance"] = w.glance
	var names []string
	for _, name := range slices.Sorted(maps.Keys(can)) {
		names = append(names, slices.Repeat([]string{name}, weight(name))...)
	}
	can[draw(names)](t)
	w.tries = slices.DeleteFunc(w.tries, func(x *repeatTry) bool { return x.over })
	audit(t, w.s)
}

// weight is how often a step is drawn: what leads on more often than what ends a try.
func weight(name string) int {
	switch word, _, _ := strings.Cut(name, " "); word {
	case "fail", "lose", "late", "glance", "give":
		return 1
	default:
		return 4
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (w *repeatWorld) read(wr *repeatWriter) {
	wr.rounds++
	wr.change, wr.read, wr.last, wr.given = fmt.Sprint(wr.name, wr.rounds), maps.Clone(w.count), nil, false
	mine := maps.Clone(w.count)
	mine[wr.change] = 1
	wr.sent = w.body(mine)
	w.s.Read(pool, ref, rev(w.n, w.body(w.count)), w.s.Epoch())
}

func (w *repeatWorld) send(t *rapid.T, wr *repeatWriter) {
	x := &repeatTry{w: wr, change: wr.change, sent: wr.sent}
	x.ctx, x.leave = context.WithCancel(context.Background())
	selection := w.s.selection(pool, ref, []byte(wr.sent))
	x.t = &selection
	x.t.client = x.ctx
	wr.last = x
	w.tries = append(w.tries, x)
	w.try(t, x)
	if x.done != nil {
		w.seen.waited++
	}
}

// wake is a turn of the loop of take.
func (w *repeatWorld) wake(t *rapid.T, x *repeatTry) {
	if x.ctx.Err() != nil {
		x.t.endWait()
		x.over = true
		return
	}
	if w.try(t, x); x.done == nil {
		x.t.endWait()
	}
}

func (w *repeatWorld) try(t *rapid.T, x *repeatTry) {
	var b Base
	handed := x.t.attempt != nil && x.t.sh.inheritances[x.t.attempt] != nil
	if b, x.done = x.t.try(); x.done != nil {
		return
	}
	x.base = &b
	t.Logf("%s is sent: %s, from %v %v %s, doubtful %v", x.change, x.sent, b.Kind, b.Numbers, b.View, b.OnlyGuards())
	switch {
	case b.Kind != KindRead && b.Kind != KindView:
		t.Fatalf("%s has the base %v (%v)", x.change, b.Kind, b.Reason)
	case b.claim.took == choice.TakeSent:
		w.seen.again++
	case handed:
		w.seen.inherited++
	}
}

// write has the engine do the write, as package write would have it: under the guard of the base, or merged into what is there.
func (w *repeatWorld) write(t *rapid.T, x *repeatTry) {
	after, ok := w.merged(t, x)
	if !ok {
		w.seen.refused++
		w.fail(x)
		return
	}
	w.store(t, x.change, after)
	told := num(w.n)
	if w.body(after) != x.sent {
		told = x.base.Numbers
	}
	x.stored = &Ack{Stored: rev(w.n, w.body(after)), Sent: []byte(x.sent), AnswerNumbers: told}
}

// merged is what the write of x would make of the document.
func (w *repeatWorld) merged(t *rapid.T, x *repeatTry) (after map[string]int, ok bool) {
	var sent, view map[string]int
	if err := json.Unmarshal([]byte(x.sent), &sent); err != nil {
		t.Fatal(err)
	}
	if x.base.OnlyGuards() || x.base.View == nil {
		w.seen.doubtful++
		return sent, x.base.Numbers == num(w.n) && !x.base.StoredDiffers // else there is more in it than its client has seen
	}
	if err := json.Unmarshal(x.base.View, &view); err != nil {
		t.Fatal(err)
	}
	after = maps.Clone(w.count)
	for k, n := range sent {
		after[k] += n
	}
	for k, n := range view {
		after[k] -= n
	}
	maps.DeleteFunc(after, func(_ string, n int) bool { return n == 0 })
	return after, true
}

// store makes after the current revision.
func (w *repeatWorld) store(t *rapid.T, by string, after map[string]int) {
	for k, n := range after {
		if n != 1 {
			t.Fatalf("%s counts %d times after the write of %s", k, n, by)
		}
	}
	for k := range w.count {
		if after[k] == 0 {
			t.Fatalf("%s is lost by the write of %s", k, by)
		}
	}
	if !maps.Equal(w.count, after) {
		w.n++
		w.count = after
	}
}

func (w *repeatWorld) acknowledge(x *repeatTry) {
	x.base.Commit(*x.stored)
	x.acked = true
}

// answer tells the client, if it is there, which then goes on.
func (w *repeatWorld) answer(x *repeatTry) {
	x.base.NoteAnswer()
	x.over = true
	if x.ctx.Err() == nil && x.w.last == x {
		w.seen.acknowledged++
		if w.count[x.change] != 1 {
			panic("acknowledged, and not there") // what is stored is never undone: see store
		}
		x.w.change = ""
	}
}

// fail ends a write of which nothing was applied; also one whose turn came after its client had left. A client that is there
// sends it again.
func (w *repeatWorld) fail(x *repeatTry) {
	x.base.Release()
	x.over = true
	if x.w.last == x && x.ctx.Err() == nil {
		x.w.last = nil
	}
}

// lose ends a write of which nobody knows whether it was applied.
func (w *repeatWorld) lose(t *rapid.T, x *repeatTry) {
	after, ok := w.merged(t, x)
	guard := w.n
	if x.base.OnlyGuards() {
		guard = x.base.Numbers.SeqNo
	}
	if ok {
		w.late = append(w.late, lateWrite{guard, after})
	}
	if x.base.claim.took == choice.TakeSent { // it changes nothing: see change.giveBack
		x.base.Release()
	} else {
		x.base.Doubt()
	}
	x.over = true
	if x.w.last == x && x.ctx.Err() == nil {
		x.w.given = true
	}
}

// lateOne has the engine come to a write whose answer was lost: its guard may still hold.
func (w *repeatWorld) lateOne(t *rapid.T) {
	i := rapid.IntRange(0, len(w.late)-1).Draw(t, "write")
	l := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	if l.guard == w.n {
		w.store(t, "late", l.after)
	}
}

// glance looks at what the write of somebody would be based on, which must change nothing.
func (w *repeatWorld) glance(t *rapid.T) {
	wr := rapid.SampledFrom(w.writers).Draw(t, "writer")
	before := w.known()
	if _, err := w.s.Glance().Take(ended(), pool, ref, []byte(wr.sent)); err != nil {
		return // it would wait
	}
	if after := w.known(); after != before {
		t.Fatalf("a glance made of\n%s this:\n%s", before, after)
	}
}

// known is what is known of the document in the session.
func (w *repeatWorld) known() string {
	k := viewcache.Key{Session: pool, Ref: ref}
	sh := w.s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.Peek(k)
	if e == nil {
		return ""
	}
	out := fmt.Sprintf("view %v %v\n", e.View.Set, e.View.Numbers)
	for _, r := range e.Reads {
		out += fmt.Sprintf("read %v %d %v\n", r.Numbers, r.Count, r.Doubt)
	}
	for _, o := range e.Repeats.Attempts() {
		out += fmt.Sprintf("recent %v\n", o)
	}
	if f := sh.pending.Of(k); f != nil {
		out += fmt.Sprintf("flights %v %v\n", f.Any(), f.Guards())
	}
	return out
}

// end lets everything come to its end, and looks whether anything is left over.
func (w *repeatWorld) end(t *rapid.T) {
	for n := 0; len(w.tries) > 0; n++ {
		if n > 1000 {
			t.Fatalf("somebody waits for ever: %+v", w.tries[0])
		}
		w.step(t, func(names []string) string {
			for _, p := range []string{"answer", "acknowledge", "wake", "write"} {
				if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, p) }); i >= 0 {
					return names[i]
				}
			}
			t.Fatalf("somebody waits for ever: %v", names)
			return ""
		})
	}
	k := viewcache.Key{Session: pool, Ref: ref}
	sh := w.s.shard(k)
	if sh.pending.Len() != 0 {
		t.Fatalf("%d documents in flight, or somebody waits", sh.pending.Len())
	}
	if e := sh.Peek(k); e != nil {
		for _, o := range e.Repeats.Attempts() {
			if !o.IsOver() {
				t.Fatalf("of a request that has ended something is kept: %+v", o)
			}
		}
	}
}
