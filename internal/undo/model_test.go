package undo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/rewrite/merge"
)

var errCrash = errors.New("the process ended")

// model is one lock's holder, others that write documents beside it, and proxies that end at any step, or stop there and go on later.
type model struct {
	t      *testing.T
	e      *enginetest.Engine
	r      *rand.Rand
	leases []undo.Lock       // acquired together
	was    map[string]string // documents before
	others map[string]int64  // what the others have written last, by document
	flying []flight          // sent by the holder, and not arrived yet
	left   int
	after  bool // the next holder has the lock, and has written
	nested int
	broken func(undo.Options) undo.Options // a planted bug
	bad    func()                          // is told of what is wrong, instead of the test
}

// flight is a write on its way.
type flight struct{ method, target, body string }

var modelDocs = []string{"0", "1", "2", "3", "4", "5"}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, e: enginetest.New(), r: rand.New(rand.NewPCG(seed, 1)), was: map[string]string{}, others: map[string]int64{},
		leases: []undo.Lock{{Doc: "global:x", Name: "/_lock/global/x", Owner: "holder", Token: 7}}}
	if seed%2 == 1 { // two of them have the same token by chance
		for i, token := range []int64{9, 8, 9} {
			m.leases = append(m.leases, undo.Lock{Doc: fmt.Sprint("doc:", i), Name: fmt.Sprint("/docs/_lock/doc/", i), Owner: "holder", Token: token})
		}
	}
	for _, id := range modelDocs[:5] {
		m.was[id] = fmt.Sprintf(`{ "a":0, "b":0, "id":%q }`, id)
		m.e.Put(t, "/docs/_doc/"+id, m.was[id])
	}
	return m
}

// proxy is a process. It ends at some step, if it may.
func (m *model) proxy(mayEnd bool) *undo.Store {
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	ended, awaits := false, false
	var ticks atomic.Int64 // the proxy's own clock: a slow machine mustn't make the grace shorter
	o := undo.Options{Now: func() time.Time { return time.UnixMilli(ticks.Add(1)) }, Upstream: m.e, Index: "undo",
		Authorization: "Basic x", Grace: 3 * time.Millisecond, Takeover: time.Nanosecond,
		Poll: time.Millisecond, Merger: func(string) undo.Merger { return plain },
		Left: func(_ context.Context, l *undo.Left) error {
			m.left++
			m.t.Logf("left: %s %s: %s, not %s: %s", l.ID, l.After, l.Current.Source, l.Before, l.Why)
			return nil
		},
		Fault: func(step string) error {
			if awaits = step == "await" || awaits && step != "claim"; step == "await" || !awaits { // what comes after the last look stays
				m.between(step)
			}
			if ended = ended || mayEnd && m.r.IntN(12) == 0; ended {
				return errCrash
			}
			return nil
		}}
	if m.broken != nil {
		o = m.broken(o)
	}
	return undo.New(o)
}

// between is what happens while a proxy is at a step.
func (m *model) between(step string) {
	if step == "undone" || step == "register" || m.after { // what makes a document comes within the grace
		return
	}
	if m.r.IntN(4) == 0 {
		m.other()
	}
	if len(m.flying) > 0 && m.r.IntN(3) == 0 {
		m.arrive()
	}
	if m.r.IntN(15) == 0 && m.nested == 0 && (step == "plan" || step == "write" || step == "written") {
		m.nested++ // this one stops here, another one takes over, and then this one goes on
		m.settle()
		m.grant()
		m.nested--
	}
}

// other changes a field that the holder doesn't.
func (m *model) other() {
	id := modelDocs[m.r.IntN(3)]
	status, body := m.e.Ask(m.t, "GET", "/docs/_doc/"+id, "")
	if status != http.StatusOK {
		m.t.Fatalf("document %s is gone: %s", id, body)
	}
	source := gjson.Get(body, "_source").Raw
	n := m.others[id] + 1
	next := strings.Replace(source, fmt.Sprintf(`"b":%d`, n-1), fmt.Sprintf(`"b":%d`, n), 1)
	if next == source {
		m.wrong("another's change is lost: %s has %d: %s", id, n-1, source)
		return
	}
	m.e.Put(m.t, fmt.Sprintf("/docs/_doc/%s?if_seq_no=%d&if_primary_term=%d", id, gjson.Get(body, "_seq_no").Int(),
		gjson.Get(body, "_primary_term").Int()), next)
	m.others[id] = n
}

// any is one of the leases.
func (m *model) any() undo.Lock { return m.leases[m.r.IntN(len(m.leases))] }

// tokens are those that a write carries: of one of the leases, or of two.
func (m *model) tokens() []int64 {
	tokens := []int64{m.any().Token}
	if m.r.IntN(2) == 0 {
		tokens = append(tokens, m.any().Token)
	}
	return tokens
}

func (m *model) arrive() (status int, made doc.Revision) {
	f := m.flying[0]
	m.flying = m.flying[1:]
	status, body := m.e.Ask(m.t, f.method, f.target, f.body)
	made.SeqNo, made.PrimaryTerm = gjson.Get(body, "_seq_no").Int(), gjson.Get(body, "_primary_term").Int()
	made.Version = gjson.Get(body, "_version").Int()
	return status, made
}

// hold has the holder write. It ends anywhere.
func (m *model) hold(s *undo.Store) (done bool) {
	ctx := m.t.Context()
	for n := range 2 + m.r.IntN(8) {
		id := modelDocs[m.r.IntN(len(modelDocs))]
		_, body := m.e.Ask(m.t, "GET", "/docs/_doc/"+id, "")
		w := &undo.Write{Ref: doc.Ref{Index: "docs", ID: id}}
		f := flight{"PUT", "/docs/_doc/" + id, ""}
		if gjson.Get(body, "found").Bool() {
			w.Guard = doc.Numbers{SeqNo: gjson.Get(body, "_seq_no").Int(), PrimaryTerm: gjson.Get(body, "_primary_term").Int()}
			w.Before = []byte(gjson.Get(body, "_source").Raw)
			f.target += fmt.Sprintf("?if_seq_no=%d&if_primary_term=%d", w.Guard.SeqNo, w.Guard.PrimaryTerm)
			f.body = strings.Replace(string(w.Before), `"a":`, fmt.Sprintf(`"a":%d`, n+1), 1)
		} else {
			f.target += "?op_type=create"
			f.body = fmt.Sprintf(`{"a":%d,"b":0,"made":true}`, n+1)
		}
		if w.After = []byte(f.body); w.Before != nil && id > "2" && m.r.IntN(3) == 0 {
			f.method, f.body, w.After = "DELETE", "", nil
		}
		j, err := s.Journal(ctx, m.tokens())
		if err != nil || j == nil {
			return false
		}
		at, err := j.Note(ctx, w)
		if err != nil {
			return false
		}
		m.flying = append(m.flying, f)
		if m.r.IntN(8) == 0 {
			return false // ended, and its write is on its way
		}
		status, made := m.arrive()
		if m.r.IntN(8) == 0 {
			return false // ended without the answer
		}
		if status < 300 {
			j.Applied(at, made)
		} else {
			err = j.Failed(ctx, at)
		}
		if err != nil {
			return false
		}
	}
	return true
}

// settle has one proxy after the other try, until nothing is left.
func (m *model) settle() {
	next := m.any() // whoever gets one of the locks settles all
	next.Token += 100
	for n := 0; ; n++ {
		s := m.proxy(n < 20)
		ctx, stop := context.WithTimeout(m.t.Context(), 20*time.Second)
		err := s.Settle(ctx, &next, func(int64, string) (bool, error) { return true, nil })
		stop()
		switch {
		case err == nil:
			return
		case n > 40:
			m.t.Fatal(err)
		}
	}
}

// grant checks what the next holder finds, which then writes.
func (m *model) grant() {
	if m.after {
		return
	}
	m.check(0)
	m.after = true
	for _, id := range modelDocs[:3] {
		_, body := m.e.Ask(m.t, "GET", "/docs/_doc/"+id, "")
		m.e.Put(m.t, "/docs/_doc/"+id, strings.Replace(gjson.Get(body, "_source").Raw, `"a":0`, `"a":1000`, 1))
	}
}

// check looks whether nothing is there of what the holder has written, and everything of the others.
func (m *model) check(a int64) {
	m.t.Helper()
	for _, id := range modelDocs {
		status, body := m.e.Ask(m.t, "GET", "/docs/_doc/"+id, "")
		want, there := m.was[id]
		if id <= "2" {
			want = strings.Replace(want, `"b":0`, fmt.Sprintf(`"b":%d`, m.others[id]), 1)
			want = strings.Replace(want, `"a":0`, fmt.Sprintf(`"a":%d`, a), 1)
		}
		if got := gjson.Get(body, "_source").Raw; got != want || (status == http.StatusOK) != there {
			m.wrong("document %s is %q; want %q", id, got, want)
		}
	}
	if m.left > 0 {
		m.wrong("%d dead letters", m.left)
	}
}

// wrong reports what must not be.
func (m *model) wrong(format string, args ...any) {
	m.t.Helper()
	if m.bad != nil {
		m.bad()
		return
	}
	m.t.Errorf(format, args...)
}

// run plays one history, and reports whether the holder's writes stay.
func (m *model) run() (stays bool) {
	s := m.proxy(m.r.IntN(2) == 0)
	if err := s.Open(m.t.Context(), m.leases); err == nil && m.hold(s) && m.r.IntN(2) == 0 {
		_, err := s.Commit(m.t.Context(), m.leases[0].Token)
		stays = err == nil
	}
	if !stays {
		if begun, err := m.proxy(false).Begun(m.t.Context(), m.leases); err == nil && len(begun) == 1 && (begun[0].Committed || begun[0].Ended) {
			status, body := m.e.Ask(m.t, "GET", "/undo/_doc/head-7", "")
			stays = status == http.StatusOK && gjson.Get(body, "_source.state").Str == "committed" // and the answer was lost
		}
	}
	before := m.snapshot()
	m.settle()
	if stays {
		if now := m.snapshot(); len(m.flying) == 0 && strip(now) != strip(before) {
			m.wrong("what was committed has changed: %s; it was %s", now, before)
		}
		return true
	}
	m.grant()
	for len(m.flying) > 0 {
		f := m.flying[0]
		if strings.Contains(f.target, "op_type=create") {
			m.flying = m.flying[1:] // later than the grace
			continue
		}
		m.arrive()
	}
	m.check(1000)
	return false
}

// unregistered wants no trace of the journal on the registers of the locks that others have got since.
func (m *model) unregistered() {
	s := m.proxy(false)
	for i := range m.leases {
		next := m.leases[i]
		next.Token += 100
		if err := s.Settle(m.t.Context(), &next, func(int64, string) (bool, error) { return true, nil }); err != nil {
			m.t.Error(err)
		}
	}
	if left, err := s.Registered(m.t.Context(), m.leases); err != nil || len(left) > 0 {
		m.t.Errorf("%v are registered still: %v", left, err)
	}
}

func (m *model) snapshot() (s string) {
	for _, id := range modelDocs {
		_, body := m.e.Ask(m.t, "GET", "/docs/_doc/"+id, "")
		s += gjson.Get(body, "_source").Raw + "\n"
	}
	return s
}

// strip leaves out what others have written meanwhile.
func strip(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(gjson.Get(line, "a").Raw + " ")
	}
	return b.String()
}

func TestAllOrNothingWhereverProxiesEnd(t *testing.T) {
	stayed := 0
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			if m.run() {
				stayed++
			}
			m.unregistered()
		})
	}
	if stayed == 0 || stayed == 300 {
		t.Errorf("%d histories of 300 were committed: the model tries only one kind", stayed)
	}
}

// A test that can't fail shows nothing: without what the protocol does, histories go wrong.
func TestTheModelSeesAProtocolThatIsBroken(t *testing.T) {
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]func(undo.Options) undo.Options{
		"others' changes are overwritten": func(o undo.Options) undo.Options {
			o.Merger = func(string) undo.Merger { return overwriting{plain} }
			return o
		},
		"documents that appear late stay": func(o undo.Options) undo.Options {
			o.Grace = -1
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := false
			for seed := uint64(0); seed < 300 && !wrong; seed++ {
				m := newModel(t, seed)
				m.broken = broken
				m.bad = func() { wrong = true }
				m.run()
			}
			if !wrong {
				t.Error("no history of 300 went wrong")
			}
		})
	}
}

// overwriting restores without a look at what others have changed.
type overwriting struct{ undo.Merger }

func (overwriting) Merge(_, sent, _ []byte) (merge.Result, error) {
	return merge.Result{Doc: sent, Changed: true}, nil
}

func (overwriting) Repeatable(_, _, _ []byte) (bool, error) { return true, nil }
