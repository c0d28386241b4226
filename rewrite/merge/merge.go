package merge

import (
	"bytes"
	"slices"

	"optimist/rewrite/tree"
)

// A Merger merges with one set of strategies. It is safe for concurrent use, and immutable but for what the one that Guessing returns
// remembers.
type Merger struct {
	rules    []ruleNode
	limits   tree.Limits
	guessing *Merger         // see Guessing
	steps    []steps         // of the numbers at the rules' paths, where bases are guesses; else nil
	made     func() [][]byte // see AfterCreation; nil: nobody knows
	setter   Setter          // see Before; nil: nothing is set
	parts    bool            // see OfParts
}

// New returns a Merger that decides by the rules, and by def where none of them matches; def is Sent, Current or
// Fail. The error is a *RuleError.
func New(def Strategy, paths []PathRule) (*Merger, error) {
	rules, err := compileRules(def, paths)
	if err != nil {
		return nil, err
	}
	return &Merger{rules: rules, guessing: &Merger{rules: rules, steps: make([]steps, len(rules))}}, nil
}

// Within returns a Merger with the same strategies, whose calls keep to the limits.
func (m *Merger) Within(l tree.Limits) *Merger {
	within := *m
	within.limits = l
	return &within
}

// OfParts returns a Merger like m for clients that send parts. Then sent is the base with the part in it: what the part leaves out is as in
// the base, whatever the client has seen, and stays as it is in current. See sight and transfers.
func (m *Merger) OfParts() *Merger {
	of := *m
	of.parts = true
	return &of
}

// A Setter sets some values of every merged document, whatever they are.
type Setter interface{ Sets(path string) bool }

// Before returns the Merger with the same strategies for documents in which s sets values afterwards. So nobody's value is lost there for
// the lack of a strategy, and Overwritten doesn't name them.
func (m *Merger) Before(s Setter) *Merger {
	with := *m
	with.setter = s
	return &with
}

// A Result is a merged document.
type Result struct {
	// Doc is current with the edits spliced in: every byte of it that no edit touched is where it was. It is current
	// itself, not a copy, when nothing changed.
	Doc []byte
	// Changed says whether Doc differs from current.
	Changed bool
	// Overwritten has the JSON Pointers at which strategy Sent took the client's value although somebody else had changed
	// it, too: at most MaxPaths, long ones cut back to a value around. An array without elements that could be told
	// apart is named as a whole; the index of an element is that in current,
	// once transfers are settled.
	Overwritten []string
	// OverwrittenMore is how many there were beyond Overwritten.
	OverwrittenMore int
	// Echo says that something counts once that both sides seem to have added, or may be a default of the client instead of a change: see
	// Guessing.
	Echo bool
}

// Merge replays the change base→sent on current; the package comment defines how. A nil base is the absent document, of
// which everything that was sent is a change. It is deterministic and keeps no reference to its arguments, but Result.Doc
// may be current.
//
// Errors: *ConflictError; those of tree.Tree.ParseObject for any of the documents, and of a room.
func (m *Merger) Merge(base, sent, current []byte) (Result, error) {
	return m.merge(base, sent, current, nil)
}

func (m *Merger) merge(base, sent, current []byte, a *account) (Result, error) {
	absent := base == nil
	if absent {
		base = m.untouched(sent)
	}
	r, err := m.begin(base, sent, current)
	defer r.end()
	r.account = a
	if err == nil && !absent {
		err = r.settleTransfers(m.limits)
	}
	if err != nil {
		return Result{}, err
	}
	r.value(r.base.Root(), r.sent.Root(), r.cur.Root(), r.root())
	if r.conflicts.paths != nil {
		return Result{}, &ConflictError{Paths: r.conflicts.paths, More: r.conflicts.more}
	}
	a.merged(r, r.cur.Root())
	res := Result{Doc: current, Overwritten: r.overwritten.paths, OverwrittenMore: r.overwritten.more, Echo: r.echo}
	res.Echo = res.Echo || absent && r.steps != nil // perhaps of a default, and not of a change
	if len(r.splices) == 0 && bytes.Equal(r.src, current) {
		return res, nil
	}
	if r.size() > m.limits.WithDefaults().Bytes {
		return Result{}, tree.ErrTooLarge
	}
	if room := m.limits.Room; room != nil {
		if err := room.Take(int64(r.size())); err != nil {
			return Result{}, err
		}
	}
	if doc := r.render(); !bytes.Equal(doc, current) {
		res.Doc, res.Changed = doc, true
	}
	return res, nil
}

// value merges a value that both the client and current have; b may be missing. It splices inside c.
func (r *run) value(b, s, c tree.Value, sc scope) {
	if b.SameBytes(s) {
		r.account.untouched(r, b, c)
		return
	}
	k := s.Kind()
	if from := b.Kind(); !k.IsContainer() || c.Kind() != k || from != k && (from > tree.Null || s.Len()+c.Len() == 0) {
		r.scalar(b, s, c, sc)
		return
	} else if from != k {
		b = tree.Value{} // null is as good as nothing to begin a container from
	}
	if k == tree.Array {
		r.array(b, s, c, sc)
		return
	}
	if st := r.strategy(sc); !st.anyValue() {
		sc.unfit()
	}
	r.object(b, s, c, sc)
}

// scalar merges values of which at least one isn't a container, or not of the same kind. A null may stand for an array.
func (r *run) scalar(b, s, c tree.Value, sc scope) {
	if p, ok := r.combine(b, s, c, &sc); ok {
		r.carryOut(p, c, sc)
		return
	}
	if st := r.strategy(sc); st.calculates() && !b.Equal(s) && !b.Equal(c) {
		if text, ok := r.calculate(b, s, c, sc); ok {
			r.account.decided(r, ruling{verdict: Calculated, both: true}, sides{b, s, c}, sc)
			r.replace(c, text)
			return
		}
	}
	if r.takes(b, s, c, sc) {
		r.replace(c, s.Raw())
	}
}

// calculate applies Sum, Max or Min to a value that both sides changed. ok is false where the values are not of a kind that the
// strategy can be applied to, or a sum would have too many digits.
func (r *run) calculate(b, s, c tree.Value, sc scope) (text []byte, ok bool) {
	st := r.strategy(sc)
	if st == Sum {
		from, ok1 := b.Decimal()
		to, ok2 := s.Decimal()
		now, ok3 := c.Decimal()
		if ok1 = ok1 || b.Kind() <= tree.Null; !ok1 || !ok2 || !ok3 {
			return nil, false
		}
		return r.sum(from, to, now, sc).Append(nil)
	}
	order, ok := s.Compare(c)
	if st == Max && order > 0 || st == Min && order < 0 {
		return s.Raw(), ok
	}
	return c.Raw(), ok
}

// object merges key by key.
func (r *run) object(b, s, c tree.Value, sc scope) {
	base, sent, cur := b.Finder(), s.Finder(), c.Finder()
	matched, left, rest := 0, b.Len(), s.First() // left: members of the base that neither has, as far as is known
	out := r.edit(c)
	for m := c.FirstOfAll(); m.Exists(); m = m.NextOfAll() {
		sm, bm := sent.Like(m), base.Like(m)
		if sm.Exists() && !m.Hidden() {
			matched++
		}
		if bm.Exists() && !m.Hidden() {
			left--
		}
		if sm == rest {
			rest = rest.Next() // what is before it is in current, too
		}
		switch {
		case !sm.Exists() && bm.Exists():
			r.removed(bm, m, c, sc, &out)
		case m.Hidden():
			out.keep(m)
		case sm.Exists() && !bm.SameBytes(sm):
			out.keep(m)
			r.value(bm, sm, m, r.enter(sc, tree.Place{Member: m}))
			r.leave(sc)
		default:
			out.keep(m)
			r.trail = append(r.trail, tree.Place{Member: m})
			r.account.untouched(r, bm, m)
			r.trail = r.trail[:len(r.trail)-1]
		}
	}
	if matched < s.Len() {
		left -= r.addMembers(rest, b.Finder(), cur, sc, &out)
	}
	if left > 0 {
		r.failMembers(b, s, c, sc)
	}
}

// addMembers inserts what the client's object has and current's hasn't, in the client's order, from member m on. n of it is in the base.
func (r *run) addMembers(m tree.Value, base, cur tree.Finder, sc scope, out *container) (n int) {
	for ; m.Exists(); m = m.Next() {
		if cur.Like(m).Exists() {
			continue
		}
		b := base.Like(m)
		if b.Exists() {
			n++
		}
		out.insert(r.added(b, m, r.enter(sc, tree.Place{Member: m})))
		r.leave(sc)
	}
	return n
}

// removed decides about member m of object c, which the base has as b and the client took out.
func (r *run) removed(b, m, c tree.Value, sc scope, out *container) {
	mark, sub := r.Mark(), r.enter(sc, tree.Place{Member: m})
	defer func() { r.leave(sc); r.Cut(mark) }()
	if m.Hidden() {
		// The member that hides m decides: if that goes, m goes, too. Else m would come to light.
		cur := c.Finder()
		out.keepOrRemove(m, !r.goes(b, cur.Like(m), sub))
		return
	}
	if p, ok := r.combine(b, tree.Value{}, m, &sub); ok {
		if out.keepOrRemove(m, !p.empty()) {
			r.carryOut(p, m, sub)
		}
		return
	}
	out.keepOrRemove(m, !r.takes(b, tree.Value{}, m, sub))
}

// goes reports whether member m of current, which the client took out, is removed, without noting anything. It looks once for all the
// duplicates that m hides.
func (r *run) goes(b, m tree.Value, sc scope) bool {
	if gone, known := r.gone[m]; known {
		return gone
	}
	account, overwritten, conflicts := r.account, r.overwritten, r.conflicts
	r.account = nil
	p, combined := r.combine(b, tree.Value{}, m, &sc)
	gone := combined && p.empty() || !combined && r.takes(b, tree.Value{}, m, sc)
	r.account, r.overwritten, r.conflicts = account, overwritten, conflicts
	if r.gone == nil {
		r.gone = map[tree.Value]bool{}
	}
	r.gone[m] = gone
	return gone
}

// added returns what is to be inserted for the client's member m, which current doesn't have: nil is nothing.
func (r *run) added(b, m tree.Value, sc scope) []byte {
	mark := r.Mark()
	defer r.Cut(mark)
	if p, ok := r.combine(b, m, tree.Value{}, &sc); ok {
		if p.made == nil {
			return nil
		}
		return slices.Concat(m.KeyAndColon(), p.made)
	}
	if r.takes(b, m, tree.Value{}, sc) {
		return m.Member()
	}
	return nil
}
