package base

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/identity"
	"optimist/internal/intake"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
	"optimist/rewrite/merge"
)

// library is an engine that has one document, or gives one error.
type library struct {
	rev doc.Revision
	err error
}

func (l library) Fetch(context.Context, es.Caller, es.Document) (doc.Revision, error) {
	return l.rev, l.err
}

// at are the numbers of a revision, under the first primary.
func at(seqNo int64) doc.Numbers { return doc.Numbers{SeqNo: seqNo, PrimaryTerm: 1} }

// revision is the document `{"n":N}` at the sequence number N.
func revision(n int64) doc.Revision {
	return doc.Revision{Numbers: at(n), Version: n + 1, Source: []byte(`{"n":` + string(rune('0'+n)) + `}`)}
}

// The engine holds revision 9. The session of the client has read revision 2.
func newFinder(t *testing.T, w *Search) *Finder {
	t.Helper()
	sessions := session.New(session.Options{})
	sessions.Read(w.Session, w.Doc.Ref, revision(2), sessions.Epoch())
	return &Finder{Engine: library{rev: revision(9)}, Sessions: sessions, Catalog: catalog.New(catalog.Options{})}
}

// writing is the search of a write of the document 1 by a client that names its session.
func writing(t *testing.T, method, target string, ru rule.Rule, fields ...wire.Field) *Search {
	t.Helper()
	m, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	ru.Merger, ru.Name = m, "r"
	op, sent := &api.Op{}, []byte(`{"n":3}`)
	api.Parse([]byte(method), []byte(target), op)
	w := &Search{Question: Question{Request: &Request{Op: op, Rule: &ru, Session: identity.Named(session.Credentials{1}, []byte("thread")),
		Fields: append(fields, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")})}, Began: time.Now(), Sent: sent}}
	if op.Kind == api.Delete {
		w.Sent = nil
	}
	if err := w.Read(op, w.Fields, sent, ru.IfMatch, w.Began); err != nil {
		t.Fatal(err)
	}
	w.Index.Name, w.Index.UUID = "shop", "life-1"
	return w
}

func ifMatch(value string) wire.Field {
	return wire.Field{Name: []byte("If-Match"), Value: []byte(value)}
}

// stamped puts the stamp of revision n of the document into the write.
func stamped(n int64, uuid string) func(*Search) {
	return func(w *Search) { w.Stamp = stamp.Stamp{Numbers: at(n), Document: stamp.DocumentOf(uuid, "", "1")} }
}

// all are rules under which a base may come from everywhere.
var all = rule.Rule{IfMatch: true, FromStamp: true, Session: true}

// with is the rule all with something changed.
func with(change func(*rule.Rule)) rule.Rule {
	ru := all
	change(&ru)
	return ru
}

// A write has the base that says most about what its client had seen: what is known from before, then the client's own guard, If-Match, the
// stamp, and what its session has read. The session has read revision 2; 9 is stored.
func TestTheStrongestBaseIsChosen(t *testing.T) {
	const guard = "/shop/_doc/1?if_seq_no=4&if_primary_term=1"
	given := func(kind session.Kind) func(*Search) {
		return func(w *Search) { w.Preset = &Preset{Kind: kind, Numbers: at(8)} }
	}
	overwrite := with(func(r *rule.Rule) { r.Session = false })
	fetch := with(func(r *rule.Rule) { r.Session, r.Unknown = false, rule.UnknownFetch })
	reject := with(func(r *rule.Rule) { r.Session, r.Unknown = false, rule.UnknownReject })
	explicit := with(func(r *rule.Rule) { r.MergeExplicit = true })
	for name, c := range map[string]struct {
		target string
		rule   rule.Rule
		fields []wire.Field
		more   func(*Search)

		pass bool
		err  error
		seq  int64 // of the base; 0: it has no numbers
		kind outcome.BaseKind
		void []string
	}{
		"given beats a guard":                      {target: guard, rule: all, more: given(session.KindExplicit), seq: 8, kind: outcome.BaseIfMatch, void: api.GuardParams},
		"given as a read":                          {rule: all, more: given(session.KindRead), seq: 8, kind: outcome.BaseRead, void: api.GuardParams},
		"given that says nothing":                  {rule: all, more: given(session.KindLost), seq: 2, kind: outcome.BaseRead},
		"a guard beats If-Match":                   {target: guard, rule: all, fields: []wire.Field{ifMatch(`"5-1"`)}, pass: true, seq: 4, kind: outcome.BaseExplicit},
		"a guard that names the base of a merge":   {target: guard, rule: explicit, seq: 4, kind: outcome.BaseExplicit, void: []string{"if_seq_no", "if_primary_term"}},
		"a version keeps what the session read":    {target: "/shop/_doc/1?version=7&version_type=external", rule: all, pass: true, seq: 2, kind: outcome.BaseExplicit},
		"If-Match beats a stamp":                   {rule: all, fields: []wire.Field{ifMatch(`"5-1"`)}, more: stamped(6, "life-1"), seq: 5, kind: outcome.BaseIfMatch},
		"If-Match: * is what is stored":            {rule: all, fields: []wire.Field{ifMatch(`*`)}, seq: 9, kind: outcome.BaseIfMatch},
		"of several tags, the one that is stored":  {rule: all, fields: []wire.Field{ifMatch(`"5-1", "9-1"`)}, seq: 9, kind: outcome.BaseIfMatch},
		"of several tags, one that was read":       {rule: all, fields: []wire.Field{ifMatch(`"2-1", "5-1"`)}, seq: 2, kind: outcome.BaseIfMatch},
		"of several unknown tags, the newest":      {rule: all, fields: []wire.Field{ifMatch(`"5-1", "6-1"`)}, seq: 6, kind: outcome.BaseIfMatch},
		"a tag that can't be read":                 {rule: all, fields: []wire.Field{ifMatch(`"x"`)}, err: etag.ErrBad},
		"If-Match, where the rule ignores it":      {rule: with(func(r *rule.Rule) { r.IfMatch = false }), fields: []wire.Field{ifMatch(`"5-1"`)}, seq: 2, kind: outcome.BaseRead},
		"a stamp beats the session":                {rule: all, more: stamped(6, "life-1"), seq: 6, kind: outcome.BaseStamp},
		"a stamp of another life of the index":     {rule: all, more: stamped(6, "life-2"), seq: 2, kind: outcome.BaseRead},
		"a stamp, where the rule ignores it":       {rule: with(func(r *rule.Rule) { r.FromStamp = false }), more: stamped(6, "life-1"), seq: 2, kind: outcome.BaseRead},
		"a stamp, where the index isn't known":     {rule: all, more: func(w *Search) { stamped(6, "")(w); w.Index.UUID = "" }, seq: 2, kind: outcome.BaseRead},
		"the session":                              {rule: all, seq: 2, kind: outcome.BaseRead},
		"nothing":                                  {rule: overwrite, pass: true, kind: outcome.BaseNone},
		"nothing, of a client without a session":   {rule: all, more: func(w *Search) { w.Anonymous = true }, pass: true, kind: outcome.BaseNone},
		"nothing, and the rule fetches":            {rule: fetch, seq: 9, kind: outcome.BaseFetched},
		"nothing, and the rule rejects":            {rule: reject, err: ErrPreconditionRequired, kind: outcome.BaseNone},
		"nothing, of a write that may be undone":   {rule: overwrite, more: func(w *Search) { w.Journalled = true }, seq: 9, kind: outcome.BaseFetched},
		"nothing, of a part":                       {rule: reject, more: func(w *Search) { w.Part = &patch.Request{} }, pass: true, kind: outcome.BaseNone},
		"half a guard is the engine's to refuse":   {target: "/shop/_doc/1?if_seq_no=4", rule: all, pass: true, seq: 2, kind: outcome.BaseExplicit},
		"a guard that names nothing":               {target: "/shop/_doc/1?if_seq_no=-2&if_primary_term=0", rule: all, seq: 2, kind: outcome.BaseRead, void: api.GuardParams},
		"a guard under a rule that looks at reads": {target: "/shop/_doc/1?if_seq_no=2&if_primary_term=1", rule: all, pass: true, seq: 2, kind: outcome.BaseExplicit},
	} {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = "/shop/_doc/1"
			}
			w := writing(t, "PUT", c.target, c.rule, c.fields...)
			if c.more != nil {
				c.more(w)
			}
			f := newFinder(t, w)
			pass, err := f.Choose(t.Context(), w)
			defer func() { w.Base.Release() }()
			want := doc.Numbers{}
			if c.seq != 0 {
				want = at(c.seq)
			}
			if pass != c.pass || !errors.Is(err, c.err) || w.Base.Numbers != want {
				t.Errorf("pass %v, base %v, %v; want %v, %v, %v", pass, w.Base.Numbers, err, c.pass, want, c.err)
			}
			if w.Outcome.Base != c.kind || !slices.Equal(w.Dropped, c.void) {
				t.Errorf("a base by %v, which takes the place of %q; want %v, %q", w.Outcome.Base, w.Dropped, c.kind, c.void)
			}
		})
	}
}

// A base that was known and is lost is told from one that was never known.
func TestALostBaseIsRefusedOnlyWhereTheRuleSaysSo(t *testing.T) {
	rejects := with(func(r *rule.Rule) { r.RejectLost = true })
	missing := library{err: doc.ErrMissing}
	for name, c := range map[string]struct {
		rule   rule.Rule
		reason session.Reason
		engine library
		delete bool
		part   bool

		pass  bool
		err   error
		kind  session.Kind // of the base that it has then
		cause string
	}{
		"overwritten": {rule: all, reason: session.ReasonAged, pass: true, kind: session.KindLost, cause: "aged"},
		"fetched":     {rule: with(func(r *rule.Rule) { r.Unknown = rule.UnknownFetch }), reason: session.ReasonAged, kind: session.KindRead, cause: "aged"},
		"refused":     {rule: rejects, reason: session.ReasonAged, err: ErrLost, kind: session.KindLost, cause: "aged"},
		"refused after a restart, of what is there":  {rule: rejects, reason: session.ReasonRestart, err: ErrLost, kind: session.KindRead, cause: "restart"},
		"a create after a restart":                   {rule: rejects, reason: session.ReasonRestart, engine: missing, kind: session.KindAbsent},
		"a delete after a restart":                   {rule: rejects, reason: session.ReasonRestart, engine: missing, delete: true, err: ErrLost, kind: session.KindLost, cause: "restart"},
		"of what is there, which nobody has read":    {rule: rejects, reason: session.ReasonUnwatched, err: ErrLost, kind: session.KindRead, cause: "unwatched"},
		"a create of what nobody has read":           {rule: rejects, reason: session.ReasonUnwatched, engine: missing, kind: session.KindAbsent},
		"and none where the rule rejects unknown":    {rule: with(func(r *rule.Rule) { r.RejectLost, r.Unknown = true, rule.UnknownReject }), reason: session.ReasonUnwatched, engine: missing, err: ErrPreconditionRequired, kind: session.KindAbsent},
		"a part of what nobody has read":             {rule: rejects, reason: session.ReasonUnwatched, part: true, pass: true, kind: session.KindLost, cause: "unwatched"},
		"a part after a restart":                     {rule: rejects, reason: session.ReasonRestart, part: true, err: ErrLost, kind: session.KindLost, cause: "restart"},
		"a create whose session forgot a document":   {rule: rejects, reason: session.ReasonEvicted, engine: missing, err: ErrLost, kind: session.KindLost, cause: "evicted"},
		"the engine can't be asked after a restart":  {rule: rejects, reason: session.ReasonRestart, engine: library{err: errors.New("down")}, err: doc.ErrNotWritten, kind: session.KindLost, cause: "restart"},
		"demanded where the rule rejects unknown":    {rule: with(func(r *rule.Rule) { r.Unknown = rule.UnknownReject }), reason: session.ReasonAged, err: ErrPreconditionRequired, kind: session.KindLost, cause: "aged"},
		"a document that only its numbers are known": {rule: with(func(r *rule.Rule) { r.Unknown = rule.UnknownFetch }), reason: session.ReasonAged, engine: library{rev: doc.Revision{Numbers: at(9)}, err: es.ErrNoSource}, kind: session.KindExplicit, cause: "aged"},
	} {
		t.Run(name, func(t *testing.T) {
			method := "PUT"
			if c.delete {
				method = "DELETE"
			}
			w := writing(t, method, "/shop/_doc/1", c.rule)
			if w.Base.Kind, w.Base.Reason = session.KindLost, c.reason; c.part {
				w.Part = &patch.Request{}
			}
			f := newFinder(t, w)
			if c.engine.err != nil {
				f.Engine = c.engine
			}
			pass, err := f.withoutBase(t.Context(), w)
			if pass != c.pass || !errors.Is(err, c.err) || w.Base.Kind != c.kind || w.Outcome.Reason != c.cause {
				t.Errorf("pass %v, %v, a base by %v, reason %q", pass, err, w.Base.Kind, w.Outcome.Reason)
			}
		})
	}
}

// What the engine holds at the base differs from what the client has seen if a pipeline, or a merge, has changed it.
func TestAViewIsWhatIsStoredOnlyIfNothingElseIsKnown(t *testing.T) {
	body, other := []byte(`{"n":1}`), []byte(`{"n":1,"m":2}`)
	part := func(w *Search) { w.Part = &patch.Request{} }
	piped := func(w *Search) { w.Pipeline = true }
	for name, c := range map[string]struct {
		base session.Base
		more func(*Search)
		want bool
	}{
		"a read":                              {base: session.Base{Kind: session.KindRead, View: body}, want: true},
		"a view that is stored":               {base: session.Base{Kind: session.KindView, View: body, Stored: body}, want: true},
		"a view that was merged":              {base: session.Base{Kind: session.KindView, View: body, Stored: other}},
		"a view by its numbers":               {base: session.Base{Kind: session.KindView}, want: true},
		"a view by its numbers, merged":       {base: session.Base{Kind: session.KindView, StoredDiffers: true}},
		"what is stored isn't known":          {base: session.Base{Kind: session.KindView, View: body}},
		"and nothing is merged":               {base: session.Base{Kind: session.KindView, View: body}, more: piped, want: true},
		"and nothing is merged, but it parts": {base: session.Base{Kind: session.KindView, View: body}, more: func(w *Search) { piped(w); part(w) }},
	} {
		w := writing(t, "PUT", "/shop/_doc/1", all)
		if w.Base = c.base; c.more != nil {
			c.more(w)
		}
		if got := w.ViewIsStored(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// In a session that is inferred, a part that sets values alone says the same whoever has read the document.
func TestTheEngineMergesAPartWhoseBaseSaysNothing(t *testing.T) {
	part := func(body string, upsert bool) *patch.Request {
		return &patch.Request{Incoming: []byte(body), Patch: intent.Patch{Upsert: upsert}}
	}
	view := []byte(`{"n":1,"list":[1]}`)
	for name, c := range map[string]struct {
		kind     session.Kind
		by       outcome.BaseKind
		view     []byte
		inferred bool
		part     *patch.Request
		want     bool
	}{
		"nothing known":                         {kind: session.KindNone, part: part(`{"n":2}`, false), want: true},
		"lost":                                  {kind: session.KindLost, part: part(`{"n":2}`, false), want: true},
		"absent":                                {kind: session.KindAbsent, part: part(`{"n":2}`, false), want: true},
		"absent, and the part makes it":         {kind: session.KindAbsent, part: part(`{"n":2}`, true)},
		"read in a session with a name":         {kind: session.KindRead, by: outcome.BaseRead, view: view, part: part(`{"n":2}`, false)},
		"inferred, and it sets a value":         {kind: session.KindRead, by: outcome.BaseRead, view: view, inferred: true, part: part(`{"n":2}`, false), want: true},
		"inferred, and it has what it had":      {kind: session.KindRead, by: outcome.BaseRead, view: view, inferred: true, part: part(`{"n":1}`, false)},
		"inferred, and it has a list":           {kind: session.KindRead, by: outcome.BaseRead, view: view, inferred: true, part: part(`{"list":[1,2]}`, false)},
		"inferred, and it can't be read":        {kind: session.KindRead, by: outcome.BaseRead, view: view, inferred: true, part: part(`{"n":`, false)},
		"inferred, and the numbers alone known": {kind: session.KindRead, by: outcome.BaseRead, inferred: true, part: part(`{"n":2}`, false)},
		"named by If-Match":                     {kind: session.KindExplicit, by: outcome.BaseIfMatch, view: view, inferred: true, part: part(`{"n":2}`, false)},
	} {
		w := writing(t, "POST", "/shop/_update/1", all)
		if c.inferred {
			w.Session = identity.Inferred(session.Credentials{1}, netip.Addr{})
		}
		w.Part, w.Base.Kind, w.Base.View, w.Outcome.Base = c.part, c.kind, c.view, c.by
		if got := w.IsForEngine(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The first reason counts: what isn't known of the index comes before what its document can't do.
func TestWhyAChangeCannotBeMerged(t *testing.T) {
	for name, c := range map[string]struct {
		more func(*Search)
		want string
	}{
		"it can":                        {more: func(*Search) {}},
		"unknown index":                 {more: func(w *Search) { w.Index.Unknown, w.Index.Partial = outcome.ReasonMetadata, true }, want: outcome.ReasonMetadata},
		"the source isn't whole":        {more: func(w *Search) { w.Index.Partial, w.JSON = true, false }, want: outcome.ReasonSource},
		"no JSON":                       {more: func(w *Search) { w.JSON = false }, want: outcome.ReasonFormat},
		"no JSON, through a pipeline":   {more: func(w *Search) { w.JSON, w.Pipeline = false, true }, want: outcome.ReasonPipeline},
		"the index's pipeline":          {more: func(w *Search) { w.Index.Pipeline = true }, want: outcome.ReasonPipeline},
		"a pipeline that may run again": {more: func(w *Search) { w.Index.Pipeline, w.Rule.RerunPipeline = true, true }},
	} {
		w := writing(t, "PUT", "/shop/_doc/1", all)
		c.more(w)
		if got := w.WhyUnmergeable(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The errors of a read say whether the document is missing, the time is over, or the engine couldn't be asked. All of them say that nothing
// was written.
func TestWhyADocumentCannotBeRead(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(intake.ErrTimeout)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want []error
	}{
		"no document":      {t.Context(), doc.ErrMissing, []error{doc.ErrMissing}},
		"no index":         {t.Context(), es.ErrNoIndex, []error{ErrNoIndex, doc.ErrMissing}},
		"no node":          {t.Context(), errors.New("down"), []error{doc.ErrNotWritten}},
		"the time is over": {ended, errors.New("down"), []error{intake.ErrTimeout}},
	} {
		w := writing(t, "PUT", "/shop/_doc/1", all)
		f := newFinder(t, w)
		f.Engine = library{err: c.err}
		_, err := f.Current(c.ctx, w)
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v isn't %v", name, err, want)
			}
		}
	}
}

// A write whose index couldn't be asked for has the session's base all the same, unless it has one of its own or needs none.
func TestABaseIsTakenLate(t *testing.T) {
	for name, c := range map[string]struct {
		method, target string
		more           func(*Search)
		want           session.Kind
	}{
		"a PUT":                {"PUT", "/shop/_doc/1", nil, session.KindRead},
		"a DELETE":             {"DELETE", "/shop/_doc/1", nil, session.KindRead},
		"a create":             {"PUT", "/shop/_create/1", nil, session.KindNone},
		"with a guard":         {"PUT", "/shop/_doc/1?if_seq_no=1&if_primary_term=1", nil, session.KindNone},
		"only new":             {"PUT", "/shop/_doc/1", func(w *Search) { w.OnlyNew = true }, session.KindNone},
		"without a session":    {"PUT", "/shop/_doc/1", func(w *Search) { w.Anonymous = true }, session.KindNone},
		"sessions give none":   {"PUT", "/shop/_doc/1", func(w *Search) { w.Rule.Session = false }, session.KindNone},
		"the base is there":    {"PUT", "/shop/_doc/1", func(w *Search) { w.Base.Kind = session.KindExplicit }, session.KindExplicit},
		"by a stamp, not read": {"PUT", "/shop/_doc/1", stamped(6, "life-1"), session.KindRead},
	} {
		w := writing(t, c.method, c.target, all)
		if c.more != nil {
			c.more(w)
		}
		newFinder(t, w).TakeLate(t.Context(), w)
		if w.Base.Kind != c.want {
			t.Errorf("%s: %v, want %v", name, w.Base.Kind, c.want)
		}
		w.Base.Release()
	}
}

// A part goes under the guard that its client names, by If-Match or by the stamp of its copy.
func TestTheGuardOfAPart(t *testing.T) {
	for name, c := range map[string]struct {
		fields []wire.Field
		engine library
		found  bool
		want   doc.Numbers
		err    error
	}{
		"none":                  {},
		"a tag":                 {fields: []wire.Field{ifMatch(`"5-1"`)}, found: true, want: at(5)},
		"any document":          {fields: []wire.Field{ifMatch(`*`)}, found: true, want: at(9)},
		"any, and there's none": {fields: []wire.Field{ifMatch(`*`)}, engine: library{err: doc.ErrMissing}, found: true, err: ErrNoMatch},
		"a tag nobody can read": {fields: []wire.Field{ifMatch(`x`)}, found: true, err: etag.ErrBad},
	} {
		w := writing(t, "POST", "/shop/_update/1", all, c.fields...)
		f := newFinder(t, w)
		if c.engine.err != nil {
			f.Engine = c.engine
		}
		n, found, err := f.GuardOfPart(t.Context(), w)
		if found != c.found || !errors.Is(err, c.err) || err == nil && n != c.want {
			t.Errorf("%s: %v, %v, %v", name, n, found, err)
		}
		w.Base.Release()
	}
}

// An index that the caller has just found isn't asked about. Later it may be another one, so that it is.
func TestAFoundIndexCountsOnce(t *testing.T) {
	w := writing(t, "PUT", "/alias/_doc/1", rule.Rule{})
	w.Index, w.Found = catalog.Index{}, &catalog.Index{Index: es.Index{Name: "shop", UUID: "life-1", Routing: "r"}}
	asked := 0
	f := &Finder{Catalog: catalog.New(catalog.Options{Engine: resolver{&asked}})}
	for _, want := range []struct {
		uuid  string
		asked int
	}{{"life-1", 0}, {"life-2", 1}} {
		if err := f.Locate(t.Context(), w); err != nil || w.Index.UUID != want.uuid || w.Doc.Index != "shop" || w.Doc.Routing != "r" || asked != want.asked {
			t.Errorf("%+v of %+v, after %d questions; %v", w.Doc, w.Index, asked, err)
		}
	}
}

// TestAWriteThatMayBeUndoneAsksWhichIndexItIs: a rollback touches only the index that was noted. Somebody may just have made that anew.
func TestAWriteThatMayBeUndoneAsksWhichIndexItIs(t *testing.T) {
	asked, now := 0, time.Unix(1e9, 0)
	f := &Finder{Catalog: catalog.New(catalog.Options{Engine: resolver{&asked}, Now: func() time.Time { return now }})}
	for i, want := range []struct {
		guarded bool
		after   time.Duration
		asked   int
	}{{false, 0, 0}, {true, 0, 1}, {true, incarnationAge / 2, 1}, {true, incarnationAge, 2}} {
		now = now.Add(want.after)
		w := writing(t, "PUT", "/shop/_doc/1", rule.Rule{})
		w.Journalled, w.Found = want.guarded, &catalog.Index{Index: es.Index{Name: "shop", UUID: "life-1"}}
		if err := f.Locate(t.Context(), w); err != nil || asked != want.asked || (w.Index.UUID == "life-2") != want.guarded {
			t.Errorf("%d: %+v, after %d questions; %v", i, w.Index, asked, err)
		}
	}
}

// resolver is an engine that counts the questions what an index is.
type resolver struct{ asked *int }

func (r resolver) ResolveIndex(context.Context, es.Caller, string) (es.Index, error) {
	*r.asked++
	return es.Index{Name: "shop", UUID: "life-2"}, nil
}
func (resolver) SeesWhole(context.Context, es.Caller, string, string) (bool, error) { return true, nil }
func (resolver) PrimaryTerm(context.Context, es.Caller, es.Shard, string) (int64, error) {
	return 1, nil
}
func (resolver) List(context.Context, es.Caller, string) (es.Listing, error) {
	return es.Listing{}, nil
}
