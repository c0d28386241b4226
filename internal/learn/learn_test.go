package learn

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"optimist/internal/config"
	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/session"
	"optimist/rewrite/merge"
)

type someone string

func (s someone) Name() string { return string(s) }

// fight is a Learner that conflicts are shown to.
type fight struct {
	*Learner
	t      *testing.T
	log    bytes.Buffer
	equal  int // moves that were told
	now    time.Time
	merger *merge.Merger // of the rule in force
}

func newFight(t *testing.T, rules ...merge.PathRule) *fight {
	f := &fight{t: t, now: time.Now()}
	var err error
	if f.merger, err = merge.New(merge.Sent, rules); err != nil {
		t.Fatal(err)
	}
	f.Learner = New(Options{Log: slog.New(slog.NewTextHandler(&f.log, nil)), EqualMove: func(string) { f.equal++ },
		Now: func() time.Time { return f.now }})
	return f
}

// meet shows n times that somebody sent a document which others had changed.
func (f *fight) meet(n int, base, sent, current string) {
	for i := range n {
		f.Observe(&Conflict{Ref: doc.Ref{Index: "shop", ID: "1"}, Client: someone(fmt.Sprint("c", i%3)), Outcome: "merged", Merger: f.merger,
			Base: raw(base), Sent: raw(sent), Current: raw(current)})
	}
}

func raw(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// ruled is what the merger says, as the rule shop.
func (f *fight) ruled(_, _, _, path string) Ruled {
	p, st := f.merger.Ruled(path)
	return Ruled{Rule: "shop", Path: p, Strategy: st.String()}
}

// suggested is what is suggested for the index, as in "/n sum, /list by_key sku".
func (f *fight) suggested() string {
	var list []string
	for _, ix := range f.Suggest("", f.ruled).Indices {
		for _, p := range ix.Paths {
			if p.Strategy != "" {
				list = append(list, strings.TrimSpace(p.Path+" "+p.Strategy+" "+p.Key))
			}
		}
	}
	return strings.Join(list, ", ")
}

func TestWhatTwoClientsDoToAPathTellsItsRule(t *testing.T) {
	for name, c := range map[string]struct{ base, sent, current, want string }{
		"a number moved equally":             {`{"n":7}`, `{"n":8}`, `{"n":8}`, "/n sum"},
		"a number moved down equally":        {`{"n":7}`, `{"n":-1}`, `{"n":-1}`, "/n sum"},
		"by a step, and several":             {`{"n":7}`, `{"n":8}`, `{"n":40}`, "/n sum"},
		"by hundredths":                      {`{"n":7.10}`, `{"n":7.11}`, `{"n":7.15}`, "/n sum"},
		"with more digits than a float has":  {`{"n":9007199254740993}`, `{"n":9007199254740994}`, `{"n":9007199254740995}`, "/n sum"},
		"up and down":                        {`{"n":7}`, `{"n":8}`, `{"n":6}`, ""},
		"far":                                {`{"n":7}`, `{"n":700}`, `{"n":12}`, ""},
		"a number by the client alone":       {`{"n":7}`, `{"n":8}`, `{"n":7,"m":1}`, ""},
		"a number by the others alone":       {`{"n":7,"m":1}`, `{"n":7,"m":2}`, `{"n":8,"m":1}`, ""},
		"made of nothing":                    {`{}`, `{"n":1}`, `{"n":1}`, ""},
		"a number by whoever makes the doc":  {``, `{"n":1}`, `{"n":1}`, ""},
		"no number any more":                 {`{"n":7}`, `{"n":"8"}`, `{"n":8}`, ""},
		"a later time":                       {`{"at":"2026-01-02T03:04:05Z"}`, `{"at":"2026-01-02T03:04:07.5Z"}`, `{"at":"2026-01-02T03:04:06Z"}`, "/at max"},
		"the same later time":                {`{"at":"2026-01-02T03:04:05Z"}`, `{"at":"2026-01-02T03:04:07Z"}`, `{"at":"2026-01-02T03:04:07Z"}`, "/at max"},
		"a time set":                         {`{}`, `{"at":"2026-01-02T03:04:07Z"}`, `{"at":"2026-01-02T03:04:06Z"}`, "/at max"},
		"an earlier time":                    {`{"at":"2026-01-02T03:04:05Z"}`, `{"at":"2026-01-01T03:04:07Z"}`, `{"at":"2026-01-02T03:04:06Z"}`, ""},
		"times in zones":                     {`{"at":"2026-01-02T03:04:05Z"}`, `{"at":"2026-01-02T03:04:07+01:00"}`, `{"at":"2026-01-02T03:04:06Z"}`, ""},
		"a text":                             {`{"s":"a"}`, `{"s":"b"}`, `{"s":"c"}`, ""},
		"the same text":                      {`{"s":"a"}`, `{"s":"b"}`, `{"s":"b"}`, ""},
		"a list appended to":                 {`{"l":["a"]}`, `{"l":["a","b"]}`, `{"l":["a","c"]}`, ""},
		"a set with one taken out":           {`{"l":["a","b"]}`, `{"l":["b"]}`, `{"l":["a","b","c"]}`, "/l union"},
		"a set with the same added":          {`{"l":["a"]}`, `{"l":["a","b"]}`, `{"l":["a","b"]}`, "/l union"},
		"a list with duplicates":             {`{"l":[1,1]}`, `{"l":[1]}`, `{"l":[1,1,2]}`, ""},
		"objects appended":                   {`{"l":[{"id":1}]}`, `{"l":[{"id":1},{"id":2}]}`, `{"l":[{"id":1},{"id":3}]}`, ""},
		"objects changed in place":           {`{"l":[{"q":1,"sku":"a"},{"q":2,"sku":"b"}]}`, `{"l":[{"q":5,"sku":"a"},{"q":2,"sku":"b"}]}`, `{"l":[{"q":1,"sku":"a"},{"q":3,"sku":"b"}]}`, "/l by_key sku"},
		"objects whose field is there twice": {`{"l":[{"id":1},{"id":1}]}`, `{"l":[{"id":1}]}`, `{"l":[{"id":1},{"id":1},{"id":2}]}`, ""},
		"a number deep down":                 {`{"a":{"b/c":{"n":1}}}`, `{"a":{"b/c":{"n":2}}}`, `{"a":{"b/c":{"n":2}}}`, "/a/b~1c/n sum"},
		"a number in an element": {`{"l":[{"x":"y","n":1}]}`, `{"l":[{"x":"y","n":2}]}`, `{"l":[{"x":"y","n":2}]}`,
			"/l by_key x, /l/*/n sum"},
		"a number below a key that is data": {`{"by_year":{"2026":1}}`, `{"by_year":{"2026":2}}`, `{"by_year":{"2026":2}}`, "/by_year/* sum"},
	} {
		f := newFight(t)
		f.meet(enough-1, c.base, c.sent, c.current)
		if got := f.suggested(); got != "" {
			t.Errorf("%s: after %d conflicts %s is suggested", name, enough-1, got)
		}
		f.meet(1, c.base, c.sent, c.current)
		if got := f.suggested(); got != c.want {
			t.Errorf("%s: %q is suggested, want %q", name, got, c.want)
		}
	}
}

func TestTimesAsNumbersAreNoCounters(t *testing.T) {
	now := newFight(t).now
	for name, as := range map[string]func(at time.Time) string{
		"seconds":       func(at time.Time) string { return fmt.Sprint(at.Unix()) },
		"fractions":     func(at time.Time) string { return fmt.Sprintf("%d.467413", at.Unix()) },
		"milliseconds":  func(at time.Time) string { return fmt.Sprint(at.UnixMilli()) },
		"… of a script": func(at time.Time) string { return fmt.Sprintf("%d.25", at.UnixMilli()) },
		"microseconds":  func(at time.Time) string { return fmt.Sprint(at.UnixMicro()) },
		"nanoseconds":   func(at time.Time) string { return fmt.Sprint(at.UnixNano()) },
	} {
		for ahead, want := range map[time.Duration]string{time.Second: "/at max", -time.Second: ""} { // a client's clock may be behind
			f := newFight(t)
			f.meet(6, `{"at":`+as(now)+`}`, `{"at":`+as(now.Add(ahead))+`}`, `{"at":`+as(now.Add(ahead))+`}`)
			if got := f.suggested(); got != want {
				t.Errorf("%s, %v ahead: %q is suggested", name, ahead, got)
			}
		}
	}
}

func TestMixedEvidenceSuggestsNothing(t *testing.T) {
	f := newFight(t)
	f.meet(7, `{"n":7}`, `{"n":8}`, `{"n":8}`)
	f.meet(3, `{"n":7}`, `{"n":800}`, `{"n":3}`)
	if got := f.suggested(); got != "" {
		t.Errorf("%q is suggested", got)
	}
}

func TestKeysOfAMapAreOnePath(t *testing.T) {
	f := newFight(t)
	for i := range 40 {
		k := fmt.Sprintf(`{"pages":{"p-%c%c":%%d},"other":{"n":%%[1]d}}`, 'a'+i/8, 'a'+i%8)
		f.meet(1, fmt.Sprintf(k, 1), fmt.Sprintf(k, 2), fmt.Sprintf(k, 2))
	}
	if got := f.suggested(); got != "/other/n sum, /pages/* sum" {
		t.Errorf("%q is suggested", got)
	}
	if ix, _ := f.indices.Peek(place{index: "shop"}); ix.paths.Len() != 2 {
		t.Errorf("paths %v", ix.paths.Keys())
	} else if s, _ := ix.paths.Peek("/pages/*"); s.equal != 40 || s.conflicts != 40 {
		t.Errorf("%+v", s)
	}
}

func TestFieldsOfTheDocumentAreNeverAStar(t *testing.T) {
	f := newFight(t)
	for i := range 40 {
		k := fmt.Sprintf(`{"%d":%%d}`, i)
		f.meet(3, fmt.Sprintf(k, 1), fmt.Sprintf(k, 2), fmt.Sprintf(k, 2))
	}
	if got := f.suggested(); strings.Contains(got, "*") || strings.Count(got, "sum") != 40 {
		t.Errorf("%q is suggested", got)
	}
}

func TestAKeyThatIsAStarSuggestsNothing(t *testing.T) {
	f := newFight(t)
	f.meet(3, `{"*":1,"n":1,"a":{"*":{"n":1}}}`, `{"*":2,"n":2,"a":{"*":{"n":2}}}`, `{"*":2,"n":2,"a":{"*":{"n":2}}}`)
	if got := f.suggested(); got != "/n sum" {
		t.Errorf("%q is suggested", got)
	}
}

func TestWhatTheConfigurationSaysIsNotSuggested(t *testing.T) {
	f := newFight(t, merge.PathRule{Path: "/n", Strategy: merge.Sent}, merge.PathRule{Path: "/deep", Strategy: merge.Current})
	f.meet(3, `{"n":7,"m":7,"deep":{"n":7}}`, `{"n":8,"m":8,"deep":{"n":8}}`, `{"n":8,"m":8,"deep":{"n":8}}`)
	got := map[string]string{}
	for _, p := range f.Suggest("shop", f.ruled).Indices[0].Paths {
		got[p.Path] = p.Configured
	}
	if got["/n"] != "rule shop says sent" || got["/deep/n"] != "rule shop says current" || got["/m"] != "" {
		t.Errorf("%q", got)
	}
	if f.equal != 3 || strings.Count(f.log.String(), "moved a number equally") != 1 || !strings.Contains(f.log.String(), `"merge: {paths: {/m: sum}}"`) {
		t.Errorf("%d, logged %s", f.equal, &f.log)
	}
}

func TestALineAMinuteSaysThatANumberIsMovedEqually(t *testing.T) {
	f := newFight(t)
	f.meet(5, `{"a":1,"b":1}`, `{"a":2,"b":2}`, `{"a":2,"b":2}`)
	lines := func() int { return strings.Count(f.log.String(), "\n") }
	if lines() != 1 {
		t.Errorf("%s", &f.log)
	}
	f.now = f.now.Add(time.Minute)
	f.meet(5, `{"a":1,"b":1}`, `{"a":2,"b":2}`, `{"a":2,"b":2}`)
	f.now = f.now.Add(time.Hour)
	f.meet(5, `{"a":1,"b":1}`, `{"a":2,"b":2}`, `{"a":2,"b":2}`)
	if lines() != 2 || f.equal != 30 {
		t.Errorf("%d: %s", f.equal, &f.log)
	}
}

func TestHotDocumentsAreThoseOfLate(t *testing.T) {
	f := newFight(t)
	meet := func(id string, n int) {
		for range n {
			f.Observe(&Conflict{Ref: doc.Ref{Index: "shop", ID: id}, Client: someone("10.0.0.1"), Outcome: "merged", Merger: f.merger,
				Base: raw(`{"n":1}`), Sent: raw(`{"n":2}`), Current: raw(`{"n":3}`)})
		}
	}
	meet("old", 100)
	f.now = f.now.Add(10 * time.Minute)
	meet("new", 20)
	list := f.Hot(5, f.ruled)
	if len(list) != 2 || list[0].ID != "new" || list[0].Conflicts != 20 || list[1].PerMinute != 0.1 || list[0].PerMinute < 10 {
		t.Fatalf("%+v", list)
	}
	h := list[0]
	if len(h.Clients) != 1 || h.Clients[0].Conflicts != 20 || strings.Contains(h.Clients[0].Name, "10.0.0.1") {
		t.Errorf("clients %+v", h.Clients)
	}
	if len(h.Paths) != 1 || h.Paths[0] != (Named{"/n", 20, "sent"}) || h.Outcomes[0] != (Named{"merged", 20, ""}) {
		t.Errorf("%+v %+v", h.Paths, h.Outcomes)
	}
	if list := f.Hot(1, f.ruled); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// Whoever can write can make up indices, ids and keys without end.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	f := newFight(t)
	long := strings.Repeat("x", 300)
	for i := range 1000 {
		one := fmt.Sprintf(`{"k%d":%%d,%q:%%[1]d,"m":{"k%[1]d":{"n":%%[1]d}}}`, i, long)
		f.now = f.now.Add(time.Second)
		f.Observe(&Conflict{Ref: doc.Ref{Index: fmt.Sprint("i", i%100), ID: fmt.Sprint(i)}, Client: someone(fmt.Sprint(i)), Merger: f.merger,
			Base: fmt.Appendf(nil, one, 1), Sent: fmt.Appendf(nil, one, 2), Current: fmt.Appendf(nil, one, 2)})
		f.Observed(&Conflict{Ref: doc.Ref{Index: "o", ID: fmt.Sprint(i)}, Client: someone("c"), Merger: f.merger, Sent: make([]byte, 1<<16)},
			false, doc.Numbers{}, doc.Numbers{SeqNo: int64(i), PrimaryTerm: 1})
	}
	if f.indices.Len() != maxIndices-1 || f.documents.Len() != maxDocuments-1 || f.bytes > writtenBytes || f.written.Len() > writtenBytes>>16 {
		t.Errorf("%d indices, %d documents, %d bytes of %d", f.indices.Len(), f.documents.Len(), f.bytes, f.written.Len())
	}
	for i := range 1000 {
		f.now = f.now.Add(time.Second)
		one := fmt.Sprintf(`{"k%d":%%d}`, i)
		f.Observe(&Conflict{Ref: doc.Ref{Index: "shop", ID: "1"}, Client: someone(fmt.Sprint(i)), Merger: f.merger,
			Base: fmt.Appendf(nil, one, 1), Sent: fmt.Appendf(nil, one, 5), Current: fmt.Appendf(nil, one, 2)})
	}
	ix, _ := f.indices.Peek(place{index: "shop"})
	d, _ := f.documents.Peek(doc.Ref{Index: "shop", ID: "1"})
	if ix.paths.Len() != maxPaths || len(d.clients) != maxNames || len(d.paths) != maxNames || d.conflicts != 1000 {
		t.Errorf("%d paths, %d clients, %d paths of the document", ix.paths.Len(), len(d.clients), len(d.paths))
	}
}

func TestAStormIsCountedAndNotComparedWhole(t *testing.T) {
	f := newFight(t)
	took := 10 * time.Millisecond // between two looks at the clock
	f.o.Now = func() time.Time { f.now = f.now.Add(took); return f.now }
	one := func() { f.meet(1, `{"n":1}`, `{"n":2}`, `{"n":2}`) }
	for range 100 {
		one()
	}
	if f.equal == 0 || f.equal > 20 {
		t.Errorf("%d of 100 conflicts were looked into", f.equal)
	}
	if h := f.Hot(1, f.ruled); h[0].Conflicts != 100 {
		t.Errorf("%+v", h)
	}
	before := f.equal
	took, f.now = 0, f.now.Add(time.Hour)
	if one(); f.equal != before+1 {
		t.Error("later nothing is looked into")
	}
}

func TestLargeDocumentsAreCountedAndNotCompared(t *testing.T) {
	f := newFight(t)
	large := fmt.Sprintf(`{"n":%%d,"s":%q}`, strings.Repeat("x", maxCompared/3))
	f.meet(1, fmt.Sprintf(large, 1), fmt.Sprintf(large, 2), fmt.Sprintf(large, 2))
	if h := f.Hot(1, f.ruled); f.equal != 0 || len(h) != 1 {
		t.Errorf("%d %+v", f.equal, h)
	}
}

func TestInObserveModeWhatOthersSentIsTheEvidence(t *testing.T) {
	f := newFight(t)
	at := func(seq int64) doc.Numbers { return doc.Numbers{SeqNo: seq, PrimaryTerm: 1} }
	write := func(base, stored int64, lost bool, was, sent string) {
		f.Observed(&Conflict{Ref: doc.Ref{Index: "shop", ID: "1"}, Client: someone("c"), Outcome: "lost", Merger: f.merger, Base: raw(was), Sent: raw(sent)},
			lost, at(base), at(stored))
	}
	for i := int64(0); i < 30; i += 10 {
		write(i, i+1, false, `{"n":1}`, `{"n":2}`)
		write(i, i+2, true, `{"n":1}`, `{"n":2}`)
	}
	if got := f.suggested(); got != "/n sum" || f.equal != 3 {
		t.Errorf("%q, %d", got, f.equal)
	}
	if h := f.Hot(1, f.ruled); h[0].Conflicts != 3 || h[0].Outcomes[0].Name != "lost" {
		t.Errorf("%+v", h)
	}
	// What was written after it proves nothing, nor what was made from another base: that may have erased something itself.
	write(50, 60, true, `{"m":1}`, `{"m":2}`)
	write(50, 58, true, `{"m":1}`, `{"m":2}`)
	write(55, 61, true, `{"m":1}`, `{"m":2}`)
	if got := f.suggested(); got != "/n sum" || f.equal != 3 {
		t.Errorf("%q, %d", got, f.equal)
	}
}

func TestManyClientsThatNeverReadAreSaidOnce(t *testing.T) {
	f := newFight(t)
	for i := range 100 {
		f.Blind("jobs", identity.Named(session.Credentials{}, []byte{byte(i % (manyBlind - 2))}))
		f.Blind("jobs", identity.Inferred(session.Credentials{}, netip.Addr{}).In(session.Trace{byte(i)}))
	}
	if f.log.Len() > 0 {
		t.Errorf("logged %s", &f.log)
	}
	for i := range 100 {
		f.Blind("jobs", identity.Named(session.Credentials{}, []byte{byte(i)}))
	}
	if n := strings.Count(f.log.String(), "a second optimist, or a way around"); n != 1 || !strings.Contains(f.log.String(), "index=jobs") {
		t.Errorf("%d lines: %s", n, &f.log)
	}
}

// The file of suggestions can be used as it is, whatever the names of indices and fields.
func TestSuggestionsAreAConfiguration(t *testing.T) {
	for _, own := range []bool{false, true} {
		f := newFight(t)
		f.merger, _ = merge.New(merge.Sent, nil)
		f.meet(3, `{"n":1,"st\u2028 #: ":1,"s":"a","l":[{"id":1,"q":1},{"id":2,"q":2}]}`, `{"n":2,"st\u2028 #: ":2,"s":"b","l":[{"id":1,"q":2},{"id":2,"q":2}]}`,
			`{"n":2,"st\u2028 #: ":2,"s":"c","l":[{"id":1,"q":2},{"id":2,"q":2}]}`)
		for _, name := range []string{"2026", "null", "a+b", "a_b", "a@b"} {
			for range 3 {
				f.Observe(&Conflict{Ref: doc.Ref{Index: name, ID: "1"}, Client: someone("c"), Merger: f.merger, Base: raw(`{"on":1}`), Sent: raw(`{"on":2}`), Current: raw(`{"on":3}`)})
			}
		}
		s := f.Suggest("", func(string, string, string, string) Ruled { return Ruled{Rule: "default", Strategy: "sent"} })
		s.OwnRules = own
		var text strings.Builder
		s.WriteYAML(&text)
		c, err := config.Parse("suggested.yaml", []byte(text.String()), config.Overrides{Upstream: []string{"http://127.0.0.1:1"}})
		if err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		rules := 6
		if !own {
			rules++
		}
		if len(c.Rules) != rules {
			t.Errorf("%d rules\n%s", len(c.Rules), &text)
		}
		for _, r := range c.Rules {
			if len(r.Match.Index) == 1 && r.Match.Index[0] == "shop" && fmt.Sprint(r.Merge.Paths) != "[{/l by_key id} {/l/*/q sum } {/n sum } {/st\u2028 #:  sum }]" {
				t.Errorf("%q", r.Merge.Paths)
			}
		}
	}
}

func TestWhatBelongsIntoARuleIsANote(t *testing.T) {
	f := newFight(t, merge.PathRule{Path: "/a", Strategy: merge.Sum})
	f.meet(3, `{"a":1,"b":1,"c":"x"}`, `{"a":2,"b":2,"c":"y"}`, `{"a":2,"b":2,"c":"z"}`)
	s := f.Suggest("", func(index, name, rule, path string) Ruled {
		r := f.ruled(index, name, rule, path)
		r.Claims = true
		return r
	})
	s.OwnRules = true
	var text strings.Builder
	s.WriteYAML(&text)
	for _, want := range []string{"# There is no rule to suggest.", "/a: two clients moved", "; rule shop says sum already\n",
		"#   add to merge.paths of rule shop:  /b: sum\n", "#   /c: 3 clients met another client's value 3 times; nothing is suggested"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q isn't in it:\n%s", want, &text)
		}
	}
}

func BenchmarkMet(b *testing.B) {
	for _, size := range []int{100, 2000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, _ := merge.New(merge.Sent, nil)
			now := time.Now()
			l := New(Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
			one := fmt.Sprintf(`{"n":%%d,"s":%q,"at":"2026-01-02T03:04:0%%[1]dZ","l":[{"id":1},{"id":%%[1]d}]}`, strings.Repeat("x", size))
			c := &Conflict{Ref: doc.Ref{Index: "shop", ID: "1"}, Client: someone("c"), Merger: m,
				Base: fmt.Appendf(nil, one, 1), Sent: fmt.Appendf(nil, one, 2), Current: fmt.Appendf(nil, one, 3)}
			b.ReportAllocs()
			for b.Loop() {
				l.Observe(c)
			}
		})
	}
}

// setter is a rule that sets the value at one path itself.
type setter string

func (s setter) Sets(path string) bool { return path == string(s) }

// TestWhatTheRuleSetsItselfIsNoConflict: a time of change that a transform sets was listed as a value of others that is overwritten.
func TestWhatTheRuleSetsItselfIsNoConflict(t *testing.T) {
	f := newFight(t)
	for range 20 {
		f.Observe(&Conflict{Ref: doc.Ref{Index: "shop", ID: "1"}, Client: someone("c"), Outcome: "merged", Merger: f.merger, Setter: setter("/at"),
			Base: raw(`{"at":"1","n":1,"x":"a"}`), Sent: raw(`{"n":2,"x":"b"}`), Current: raw(`{"at":"2","n":1,"x":"c"}`)})
	}
	hot := f.Hot(10, f.ruled)
	if len(hot) != 1 || len(hot[0].Paths) != 1 || hot[0].Paths[0].Name != "/x" {
		t.Errorf("%+v", hot)
	}
}

// TestNobodyHasWhatOthersConflictsTeachForgotten: a client makes up documents, and indices.
func TestNobodyHasWhatOthersConflictsTeachForgotten(t *testing.T) {
	f := newFight(t)
	meet := func(from identity.Network, index, id string) {
		f.Observe(&Conflict{Ref: doc.Ref{Index: index, ID: id}, Client: someone("c"), Network: from, Outcome: "merged", Merger: f.merger,
			Base: raw(`{"n":1}`), Sent: raw(`{"n":2}`), Current: raw(`{"n":2}`)})
		f.now = f.now.Add(time.Second)
	}
	for i := range 10 {
		meet(1, "shop", fmt.Sprint(i))
	}
	for i := range 2 * maxDocuments {
		meet(2, fmt.Sprint("made-up", i), "1")
	}
	kept := 0
	for _, h := range f.Hot(2*maxDocuments, f.ruled) {
		if h.Index == "shop" {
			kept++
		}
	}
	if ix, ok := f.indices.Peek(place{index: "shop"}); kept != 10 || !ok || ix.paths.Len() != 1 {
		t.Errorf("%d of 10 documents are known, and the index: %v", kept, ok)
	}
}
