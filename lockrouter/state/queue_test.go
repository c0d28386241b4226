package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// crowd is proxies with waiters, each doing what a proxy does: the longest waiting of each class and path asks, the others stand behind it.
type crowd struct {
	*world
	lines map[line][]waiter
	dead  [proxies]bool
	got   []waiter // in the order in which they got their lock
	count int
}

type line struct {
	proxy int
	class Class
	path  string
	mode  Mode
}

type waiter struct {
	line
	owner string
	came  int64
	token int64
}

const patience = 1_000_000

func (c *crowd) join(l line) {
	c.count++
	c.lines[l] = append(c.lines[l], waiter{line: l, owner: fmt.Sprint("w", c.count), came: c.now})
}

// head is the operation of the longest waiting of a line.
func (c *crowd) head(l line) Op {
	q := c.lines[l]
	op := Op{Do: Acquire, Owner: q[0].owner, Rid: q[0].owner, Path: l.path, Mode: l.mode, Class: l.class, TTL: 100, Wait: true,
		Age: c.now - q[0].came, Left: patience}
	if len(q) > 1 {
		op.Behind = Behind{Count: int64(len(q) - 1), Owner: q[1].owner, Rid: q[1].owner, Age: c.now - q[1].came, Left: patience}
	}
	return op
}

// ask has a line's head ask, and takes note if it gets its lock.
func (c *crowd) ask(t *rapid.T, l line) bool {
	if len(c.lines[l]) == 0 || c.dead[l.proxy] {
		return false
	}
	results := c.apply(t, l.proxy, c.head(l))[0]
	if results.Verdict != Acquired {
		return false
	}
	w := c.lines[l][0]
	w.token = results.Token
	c.lines[l] = c.lines[l][1:]
	c.got = append(c.got, w)
	return true
}

// all are the lines of living proxies that have somebody in them, in a fixed order.
func (c *crowd) all() []line {
	var found []line
	for l, q := range c.lines {
		if len(q) > 0 && !c.dead[l.proxy] {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b line) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
	return found
}

func TestNoWaiterIsForgotten(t *testing.T) {
	for name, clocks := range map[string]bool{"by the clock": true, "by what was seen": false} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { serveAll(t, clocks) }) })
	}
}

func serveAll(t *rapid.T, clocks bool) {
	c := &crowd{world: newWorld(t, clocks), lines: map[line][]waiter{}}
	drawn := func() line {
		return line{rapid.IntRange(0, proxies-1).Draw(t, "proxy"), rapid.SampledFrom([]Class{Foreground, Background}).Draw(t, "class"),
			rapid.SampledFrom([]string{"/", "/x/", "/x/y/", "/v/"}).Draw(t, "path"),
			rapid.SampledFrom([]Mode{Exclusive, Exclusive, Shared}).Draw(t, "mode")}
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0, 1:
			l := drawn()
			c.join(l)
			c.ask(t, l)
		case 2:
			c.now += rapid.Int64Range(1, 40).Draw(t, "ms")
		case 3:
			c.ask(t, drawn())
		case 4:
			if rapid.IntRange(0, 9).Draw(t, "dies") == 0 {
				c.dead[0] = true // with its entries in the queue, and its holders' leases
			}
		}
	}
	// From here on everybody alive asks now and then, and nobody releases: leases lapse by themselves.
	waiting := 0
	for _, l := range c.all() {
		waiting += len(c.lines[l])
	}
	for step := 0; waiting > 0; step++ {
		if step > 400+40*waiting {
			t.Fatalf("%d still wait after %d ms: %+v", waiting, c.now, c.doc.Queue)
		}
		c.now += 10
		for _, l := range c.all() {
			c.ask(t, l)
		}
		waiting = 0
		for _, l := range c.all() {
			waiting += len(c.lines[l])
		}
	}
}

// doc is a document with calls made by hand, at times of their own.
type story struct {
	*testing.T
	d   Doc
	now int64
}

func (s *story) call(proxy string, ops ...Op) []Result {
	results, _ := s.d.Apply(&Call{Lock: "/_lock/global/a", Kind: Global, Proxy: proxy, Ops: ops, Bound: bound, Grace: grace}, Clock{Now: s.now})
	return results
}

func (s *story) expect(results []Result, want ...Verdict) {
	s.Helper()
	for i := range want {
		if results[i].Verdict != want[i] {
			s.Fatalf("%v, want %v; %+v", results, want, s.d)
		}
	}
}

func waits(owner string, class Class, age int64) Op {
	return Op{Do: Acquire, Owner: owner, Rid: owner, Mode: Exclusive, Class: class, TTL: 1000, Wait: true, Age: age, Left: 100_000}
}

func TestForegroundGoesFirstAndTheBackgroundIsPassedSoManyTimesOnly(t *testing.T) {
	s := &story{T: t, now: 1000}
	s.expect(s.call("p0", waits("h", Foreground, 0)), Acquired)
	s.expect(s.call("p1", waits("slow", Background, 0)), Queued)
	holder := s.d.Holds[0]
	for i := range bound + 1 {
		s.now += 10
		owner := fmt.Sprint("f", i)
		s.expect(s.call("p2", waits(owner, Foreground, 5)), Queued)
		results := s.call("p2", Op{Do: Release, Owner: holder.Owner, Token: holder.Token}, waits(owner, Foreground, 5))
		if i == bound {
			s.expect(results, Released, Queued)
			break
		}
		s.expect(results, Released, Acquired)
		holder = s.d.Holds[0]
	}
	s.expect(s.call("p1", waits("slow", Background, 50)), Acquired)
}

func TestATryThatDoesntWaitPassesNobody(t *testing.T) {
	s := &story{T: t, now: 1000}
	s.expect(s.call("p0", waits("h", Foreground, 0)), Acquired)
	s.expect(s.call("p1", waits("w", Foreground, 0)), Queued)
	s.expect(s.call("p0", Op{Do: Release, Owner: "h", Token: s.d.Last}), Released)
	try := waits("t", Foreground, 0)
	try.Wait = false
	s.expect(s.call("p0", try), Held)
	s.expect(s.call("p1", try), Held) // nor those of its own proxy
	s.expect(s.call("p1", waits("w", Foreground, 10)), Acquired)
}

func TestAProxyThatDiedIsPassedAfterTheGrace(t *testing.T) {
	s := &story{T: t, now: 1000}
	s.expect(s.call("p0", waits("h", Foreground, 0)), Acquired)
	s.expect(s.call("dead", waits("w", Foreground, 5)), Queued)
	s.expect(s.call("p1", waits("n", Foreground, 0)), Queued)
	s.expect(s.call("p0", Op{Do: Release, Owner: "h", Token: s.d.Last}), Released)
	s.now += grace
	s.expect(s.call("p1", waits("n", Foreground, 1)), Queued)
	s.now++
	s.expect(s.call("p1", waits("n", Foreground, 1)), Acquired)
	if len(s.d.Queue) != 0 {
		t.Errorf("the dead proxy's entry is still there: %+v", s.d.Queue)
	}
}

func TestARenewalAfterExpiryIsRefusedBeforeAnyoneTookOver(t *testing.T) {
	s := &story{T: t, now: 1000}
	s.expect(s.call("p0", waits("h", Foreground, 0)), Acquired)
	first := s.d.Last
	s.now += 1000
	try := waits("other", Foreground, 0)
	try.Wait = false
	s.expect(s.call("p1", try), Held) // the ms in which it ends is its own
	s.now++
	s.expect(s.call("p0", Op{Do: Renew, Owner: "h", Token: first}), Expired)
	s.expect(s.call("p0", Op{Do: Release, Owner: "h", Token: first}), Expired)
	s.expect(s.call("p0", waits("h", Foreground, 0)), Acquired)
	if s.d.Last <= first {
		t.Error("a lease after another has its token")
	}
}

func TestTheRootIsNotStarvedByTheLeaves(t *testing.T) {
	s := &story{T: t, now: 1000}
	leaf := func(owner string) Op {
		op := waits(owner, Foreground, 0)
		op.Path = "/a/" + owner + "/"
		return op
	}
	root := waits("root", Foreground, 10)
	root.Path = "/"
	s.expect(s.call("p0", leaf("l1"), leaf("l2")), Acquired, Acquired)
	tokens := []int64{s.d.Holds[0].Token, s.d.Holds[1].Token}
	s.expect(s.call("p1", root), Queued)
	s.expect(s.call("p0", leaf("l3")), Queued) // it came after the root
	s.expect(s.call("p0", Op{Do: Release, Owner: "l1", Path: "/a/l1/", Token: tokens[0]},
		Op{Do: Release, Owner: "l2", Path: "/a/l2/", Token: tokens[1]}),
		Released, Released)
	s.expect(s.call("p1", root), Acquired)
	s.expect(s.call("p1", Op{Do: Release, Owner: "root", Path: "/", Token: s.d.Last}), Released)
	s.expect(s.call("p0", leaf("l3")), Acquired)
}

func TestPathsThatCouldBeTheSameAre(t *testing.T) {
	for in, want := range map[string]string{"": "/", "/": "/", "a": "/a/", "/a//b/": "/a/b/", "ü/😀": "/ü/😀/"} {
		if got, err := Path(in); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	for _, in := range []string{"a/../b", ".", "\xff"} {
		if got, err := Path(in); err == nil {
			t.Errorf("%q: %q", in, got)
		}
	}
	for in, want := range map[string]string{
		"a//b": "/a/b/", strings.Repeat("d/", 70): strings.Repeat("/d", MaxDepth) + "/",
		strings.Repeat("L", 1000) + strings.Repeat("/LLLLL", 1000):  "/" + strings.Repeat("L", 1000) + strings.Repeat("/LLLLL", 4) + "/",
		strings.Repeat("L", 2000) + "/" + strings.Repeat("M", 2000): "/" + strings.Repeat("L", 2000) + "/",
	} {
		if got, err := Place(in); err != nil || got != want {
			t.Errorf("%.40s: %q %v", in, got, err)
		}
	}
	for _, in := range []string{"a/../b", strings.Repeat("d/", 70) + "..", strings.Repeat("d/", 1000) + "\xff"} {
		if got, err := Place(in); err == nil {
			t.Errorf("%.40s: %q", in, got)
		}
	}
	if Related("/a/", "/ab/") || !Related("/a/", "/a/b/") || !Related("/", "/a/") {
		t.Error("a path is above another one where it is a prefix in whole segments")
	}
}
