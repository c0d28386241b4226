package fairqueue

import (
	"math/bits"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/identity"
	"optimist/internal/share"
)

func clientAt(network byte, who int) share.Client {
	return share.Of(netip.AddrFrom4([4]byte{192, 0, 2, network}), uint64(who)+1)
}

// TestManyThatWaitCostLittle counts comparisons. Ten thousand wait: of one client, of as many made-up clients at one address, and of
// many addresses.
func TestManyThatWaitCostLittle(t *testing.T) {
	const waiting = 10_000
	for name, client := range map[string]func(i int) share.Client{
		"one client":       func(int) share.Client { return clientAt(1, 0) },
		"made-up clients":  func(i int) share.Client { return clientAt(1, i) },
		"many at many":     func(i int) share.Client { return clientAt(byte(i), i/100) },
		"each at its own":  func(i int) share.Client { return share.Client{Network: identity.Network(i + 1)} },
		"one and optimist": func(i int) share.Client { return []share.Client{{}, clientAt(1, 0)}[i%2] },
	} {
		t.Run(name, func(t *testing.T) {
			l, steps := NewShared[int](), 0
			c := &l.classes[0]
			c.ranking.less = func(a, b *network[int]) bool { steps++; return lessNetwork(a, b) }
			var all []*Waiter[int]
			for i := range waiting {
				all = append(all, l.Join(client(i), false, i))
			}
			for _, n := range c.networks {
				n.ranking.less = func(a, b *queue[int]) bool { steps++; return lessQueue(a, b) }
			}
			most := 0
			step := func(f func()) {
				steps = 0
				f()
				most = max(most, steps)
			}
			for i := range waiting / 2 {
				step(func() { l.Leave(all[(i*7919)%waiting]) })
				step(func() {
					if p := l.Next(1 << 20); p != nil {
						l.Count(p.Client, 1)
					}
				})
			}
			if bound := 4 * bits.Len(waiting); most > bound {
				t.Errorf("a step takes %d comparisons, want %d at most", most, bound)
			}
			t.Logf("%d comparisons at most", most)
		})
	}
}

// TestALineIsTheLeastOfAllThatWait compares it with a slice that is searched.
func TestALineIsTheLeastOfAllThatWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewShared[int]()
		var turns Turns
		var waiting [2][]*Waiter[int]
		var out []share.Client
		total := rapid.IntRange(1, 40).Draw(t, "total")
		since, clock := map[any]int{}, 0
		type ofClient struct {
			class  *class[int]
			client share.Client
		}
		type ofNetwork struct {
			class   *class[int]
			network identity.Network
		}
		names := func(p *Waiter[int]) [2]any {
			return [2]any{ofNetwork{p.class, p.Client.Network}, ofClient{p.class, p.Client}}
		}
		// gone forgets whose writes wait no more, once p has left.
		gone := func(p *Waiter[int]) {
			of, client := names(p), false
			for _, q := range slices.Concat(waiting[0], waiting[1]) {
				if names(q)[0] == of[0] {
					of[0] = nil
				}
				client = client || names(q)[1] == of[1]
			}
			if delete(since, of[0]); !client {
				delete(since, of[1])
			}
		}
		key := func(p *Waiter[int]) [5]int {
			own, at := 0, 0
			for _, c := range out {
				if c == p.Client {
					own++
				}
				if c.Network == p.Client.Network {
					at++
				}
			}
			own, at = share.Counted(p.Client.Network, own), share.Counted(p.Client.Network, at)
			// The network takes its turn by the least that one of its clients needs, and so does the client in it.
			return [5]int{share.Need(at, own), at, since[names(p)[0]], own, since[names(p)[1]]}
		}
		least := func(class []*Waiter[int]) *Waiter[int] {
			if len(class) == 0 {
				return nil
			}
			p := slices.MinFunc(class, func(a, b *Waiter[int]) int { x, y := key(a), key(b); return slices.Compare(x[:], y[:]) })
			if key(p)[0] > total-len(out) {
				return nil
			}
			return p
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				class := rapid.IntRange(0, 1).Draw(t, "class")
				c := clientAt(byte(rapid.IntRange(1, 3).Draw(t, "network")), rapid.IntRange(0, 3).Draw(t, "who"))
				if rapid.IntRange(0, 9).Draw(t, "own") == 0 {
					c = share.Client{}
				}
				p := l.Join(c, class == 1, 0)
				clock++
				for _, name := range names(p) {
					if _, waits := since[name]; !waits {
						since[name] = clock
					}
				}
				waiting[class] = append(waiting[class], p)
			case 2:
				class := rapid.IntRange(0, 1).Draw(t, "class")
				if n := len(waiting[class]); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "place")
					p := waiting[class][i]
					waiting[class] = slices.Delete(waiting[class], i, i+1)
					if gone(p); !l.Leave(p) || l.Leave(p) {
						t.Fatal("it leaves once")
					}
				}
			case 3:
				if n := len(out); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "out")
					l.Count(out[i], -1)
					out = slices.Delete(out, i, i+1)
				}
			case 4:
				fore, back := least(waiting[0]), least(waiting[1])
				b, ok := turns.Next(fore != nil, back != nil, len(waiting[1]) > 0)
				want := fore
				if b {
					want = back
				}
				got := l.Next(total - len(out))
				if got != want || ok != (got != nil) {
					t.Fatalf("%+v goes, want %+v", got, want)
				}
				if got != nil {
					for class := range waiting {
						waiting[class] = slices.DeleteFunc(waiting[class], func(p *Waiter[int]) bool { return p == got })
					}
					clock++
					for _, name := range names(got) {
						since[name] = clock
					}
					gone(got)
					out = append(out, got.Client)
					l.Count(got.Client, 1)
				}
			}
			if l.classes[0].len != len(waiting[0]) || l.classes[1].len != len(waiting[1]) {
				t.Fatalf("%d and %d wait", l.classes[0].len, l.classes[1].len)
			}
		}
	})
}

// TestEachWaitsForOneOfEachOther: many wait, at few addresses or many, with as many made-up clients as they like. A good client waits again and
// again. Each time, every other address gets one turn at most before it, and the background its part.
func TestEachWaitsForOneOfEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewShared[int]()
		places := rapid.IntRange(1, 20).Draw(t, "places")
		networks := rapid.IntRange(1, 20).Draw(t, "networks")
		clients := rapid.IntRange(1, 1000).Draw(t, "clients")
		var out []share.Client
		made := 0
		attack := func(n int) {
			for range n {
				l.Join(clientAt(byte(made%networks), made%clients), rapid.Float64().Draw(t, "class") < 0.2, 0)
				made++
			}
		}
		fill := func() (went []*Waiter[int]) {
			for p := l.Next(places - len(out)); p != nil; p = l.Next(places - len(out)) {
				went, out = append(went, p), append(out, p.Client)
				l.Count(p.Client, 1)
			}
			return went
		}
		attack(1000)
		fill()
		good := share.Of(netip.MustParseAddr("198.51.100.1"), 1)
		bound := networks + networks/Patience + 1
		for range 10 {
			p := l.Join(good, false, 0)
			others := 0
			for went := fill(); ; went = fill() {
				at := slices.Index(went, p)
				if others += len(went[:max(at, 0)]); at < 0 {
					others += len(went)
				}
				if others > bound {
					t.Fatalf("%d turns of %d addresses came before the good client's", others, networks)
				}
				if at >= 0 {
					break
				}
				attack(rapid.IntRange(0, 3).Draw(t, "more"))
				end := rapid.IntRange(0, len(out)-1).Draw(t, "end")
				l.Count(out[end], -1)
				out = slices.Delete(out, end, end+1)
			}
			for i, c := range out { // it gives its place back
				if c == good {
					out = slices.Delete(out, i, i+1)
					l.Count(good, -1)
					break
				}
			}
		}
	})
}

// TestOptimistsOwnRequestsHoldNoClientUp: clients can make optimist ask the engine as often as they like, as with locks. A client that has
// a place needs two free ones for the next. Here both always wait, optimist has all other places, and one becomes free at a time.
func TestOptimistsOwnRequestsHoldNoClientUp(t *testing.T) {
	for _, places := range []int{8, 16, 512} {
		l, good, optimist := NewShared[int](), clientAt(1, 0), share.Client{}
		out, has := []share.Client{good}, map[share.Client]int{good: 1, optimist: places - 1}
		for len(out) < places {
			out = append(out, optimist)
		}
		for _, c := range out {
			l.Count(c, 1)
		}
		for range 20 * places {
			l.Join(optimist, false, 0)
			l.Join(good, false, 0)
		}
		for range 10 * places {
			// Who has most gives one back. So the client keeps what it gets.
			end := slices.Index(out, optimist)
			l.Count(optimist, -1)
			has[optimist]--
			out = slices.Delete(out, end, end+1)
			for p := l.Next(places - len(out)); p != nil; p = l.Next(places - len(out)) {
				l.Count(p.Client, 1)
				has[p.Client]++
				out = append(out, p.Client)
			}
		}
		if has[good] < 2 || has[good] < places/6 || has[optimist] < 2*has[good] {
			t.Errorf("of %d places, the client has %d, and optimist %d", places, has[good], has[optimist])
		}
	}
}
