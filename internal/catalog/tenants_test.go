package catalog

import (
	"context"
	"hash/maphash"
	"strconv"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/session"
)

// clusters is an engine behind a gateway: each realm's index is another one.
type clusters struct {
	Engine
	uuids map[string]string // by the value of the client's only field
	terms map[string]int64
	// meanwhile happens between an answer and its arrival.
	meanwhile func()
}

func (c *clusters) ResolveIndex(_ context.Context, caller es.Caller, name string) (es.Index, error) {
	uuid := c.uuids[string(caller.Params)]
	if c.meanwhile != nil {
		defer c.meanwhile()
	}
	if uuid == "" {
		return es.Index{}, es.ErrNoIndex
	}
	return es.Index{Name: name, UUID: uuid}, nil
}

func asker(name string) Asker {
	credentials := identity.CredentialsOf([]byte(name))
	return Asker{Realm: credentials, Credentials: credentials, Caller: es.Caller{Params: []byte(name)}}
}

// world is a catalog with sessions, whose suspicions it settles.
type world struct {
	t *testing.T
	*Catalog
	engine   *clusters
	sessions *session.Store
	renewed  []session.Credentials
}

func newWorld(t *testing.T, uuids map[string]string) *world {
	t.Helper()
	w := &world{t: t, engine: &clusters{uuids: uuids}, sessions: session.New(session.Options{})}
	w.sessions.Wrote(session.Credentials{}, "shop") // there is something to be suspected
	w.Catalog = New(Options{Engine: w.engine, Sessions: w.sessions, Recreated: func(credentials session.Credentials, index string) {
		w.renewed = append(w.renewed, credentials)
		w.sessions.DropIndex(credentials, index)
	}})
	for cells := map[any]bool{}; len(cells) < 3; { // which of them share one is chance
		clear(cells)
		w.seed = maphash.MakeSeed()
		for _, who := range []string{"anna", "bert", "carl"} {
			cells[w.wasIdentified(nameKey{"shop", asker(who).Realm})] = true
		}
	}
	return w
}

// ask resolves the name as a client whose last answer is older than maxAge; 0: than a minute.
func (w *world) ask(who string, maxAge time.Duration) {
	w.t.Helper()
	if ix, err := w.Resolve(w.t.Context(), asker(who), "shop", maxAge); err != nil || ix.UUID != w.engine.uuids[who] {
		w.t.Fatalf("%s: %+v %v, want %s", who, ix, err, w.engine.uuids[who])
	}
}

// keeps reports whether what the client knew at the epoch still counts, once the suspicions about it are settled.
func (w *world) keeps(who string, at session.Epoch) bool {
	w.t.Helper()
	w.ask(who, 0)
	credentials := asker(who).Credentials
	if _, open := w.sessions.Suspicion(credentials, "shop"); open {
		w.t.Fatalf("%s: the answer settles nothing", who)
	}
	return !w.sessions.Dropped(credentials, "shop", at)
}

func TestIndicesOfOneNameInTwoClustersAreTwo(t *testing.T) {
	w := newWorld(t, map[string]string{"anna": "a1", "bert": "b1"})
	for range 2 {
		w.ask("anna", time.Nanosecond)
		w.ask("bert", time.Nanosecond)
	}
	if len(w.renewed) > 0 {
		t.Fatalf("%v: nothing was made anew", w.renewed)
	}
	at := w.sessions.Epoch()
	w.engine.uuids["anna"] = "a2"
	w.ask("anna", time.Nanosecond)
	if !w.keeps("bert", at) || w.keeps("anna", at) || len(w.renewed) != 1 {
		t.Errorf("%v: want Anna's alone, and Bert keeps what he knew", w.renewed)
	}
	// What Bert sees, does, or asks for says nothing of Anna's, and the other way round.
	at = w.sessions.Epoch()
	bert := asker("bert")
	for name, do := range map[string]func(){
		"missing":   func() { w.Missing(bert, "shop") },
		"changed":   func() { w.sessions.DropIndex(bert.Credentials, "shop"); w.Forget(bert.Credentials, "shop") },
		"made anew": func() { w.engine.uuids["bert"] += "x"; w.ask("bert", time.Nanosecond) },
	} {
		if do(); !w.keeps("anna", at) {
			t.Errorf("%s: Anna's bases end", name)
		}
	}
	w.RefusedGuard(asker("anna"), "shop")
	if ix := (Index{Index: es.Index{Name: "shop"}}); w.Guardable(asker("anna"), ix) || !w.Guardable(bert, ix) {
		t.Error("Anna's index has no sequence numbers, Bert's has")
	}
}

func TestAnIndexThatIsMadeAnewIsAnotherForAllOfItsCluster(t *testing.T) {
	for name, known := range map[string]bool{"who has written there": true, "who has only read": false} {
		w := newWorld(t, map[string]string{"anna": "1", "carl": "1"})
		w.ask("anna", 0)
		if known {
			w.ask("carl", 0)
		}
		at := w.sessions.Epoch()
		w.engine.uuids["anna"], w.engine.uuids["carl"] = "2", "2"
		w.ask("anna", time.Nanosecond)
		if w.keeps("carl", at) {
			t.Errorf("%s: the bases are of the index that was there before", name)
		}
		at = w.sessions.Epoch()
		for range 3 {
			if w.ask("anna", time.Nanosecond); !w.keeps("carl", at) || !w.keeps("anna", at) || len(w.renewed) != 1 {
				t.Errorf("%s: it is found out more than once: %v", name, w.renewed)
			}
		}
	}
}

// Nobody has asked for Anna what the index is, but others of her cluster know it since before she read there.
func TestAnIndexThatOthersKnowIsProvenByThem(t *testing.T) {
	w := newWorld(t, map[string]string{"anna": "1", "carl": "1"})
	before := w.sessions.Epoch()
	w.ask("carl", 0)
	at := w.sessions.Epoch()
	w.sessions.DropIndex(asker("bert").Credentials, "shop")
	if !w.keeps("anna", at) {
		t.Error("the index is the one that was there")
	}
	if !w.sessions.Dropped(asker("anna").Credentials, "shop", before) {
		t.Error("nothing shows which index was there before anybody knew it")
	}
}

// An answer says nothing of what happened after the engine gave it.
func TestASuspicionThatComesWithTheAnswerIsNotSettledByIt(t *testing.T) {
	for finds, settled := range map[int]bool{1: true, maxQuestions: false} {
		w := newWorld(t, map[string]string{"anna": "1"})
		w.ask("anna", 0)
		left := finds
		w.engine.meanwhile = func() {
			if left > 0 {
				left--
				w.sessions.DropIndex(asker("bert").Credentials, "shop")
			}
		}
		w.sessions.DropIndex(asker("bert").Credentials, "shop")
		w.ask("anna", 0)
		if _, open := w.sessions.Suspicion(asker("anna").Credentials, "shop"); open == settled {
			t.Errorf("%d finds while the engine is asked: settled %v, want %v", finds, !open, settled)
		}
	}
}

// Whoever makes up identities can make the catalog forget which index a client was told of. It remembers that there was one.
func TestAnIndexIsFoundOutWhoseIdentityHadToMakeRoom(t *testing.T) {
	w := newWorld(t, map[string]string{"anna": "1"})
	w.ask("anna", 0)
	forget := func() {
		for i := range maxNames {
			w.uuids.Add(asker("anna").Caller.Client.Network, nameKey{"other", asker(strconv.Itoa(i)).Realm}, identified{uuid: "m"})
		}
	}
	at := w.sessions.Epoch()
	forget()
	w.ask("anna", time.Nanosecond)
	if len(w.renewed) > 0 || !w.keeps("anna", at) {
		t.Fatal("it is the same index")
	}
	forget()
	w.engine.uuids["anna"] = "2"
	if w.ask("anna", time.Nanosecond); len(w.renewed) != 1 || w.keeps("anna", at) {
		t.Error("it is another index")
	}
	at = w.sessions.Epoch()
	w.ask("carl", time.Nanosecond)
	w.ask("anna", time.Nanosecond)
	if w.Missing(asker("anna"), "shop"); w.keeps("anna", at) {
		t.Error("it was missing")
	}
}

func TestAPrimaryIsOneOfItsRealm(t *testing.T) {
	e := &clusters{terms: map[string]int64{"anna": 1, "bert": 7}}
	c := New(Options{Engine: e})
	conflict := func() *Conflict {
		return &Conflict{Index: "shop", Sent: time.Now().Add(-time.Second), Answered: time.Now(), Shard: "0"}
	}
	if !c.SamePrimary(t.Context(), asker("anna"), conflict(), 1) {
		t.Error("under the first term there was never another primary")
	}
	if c.SamePrimary(t.Context(), asker("bert"), conflict(), 7) {
		t.Error("Bert's primary is taken for Anna's")
	}
}

// An index that was made anew counts its terms from 1 again: a term of the index before it proves nothing of its shards.
func TestATermOfAnIndexBeforeProvesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		acknowledged, current, now int64
		same                       bool
	}{
		"the same index":                               {acknowledged: 5, current: 5, now: 5, same: true},
		"the same index, and a later primary":          {acknowledged: 5, current: 5, now: 6},
		"made anew, and not yet as far":                {acknowledged: 5, current: 1, now: 2},
		"made anew, and the document was written late": {acknowledged: 5, current: 2, now: 2},
		"made anew, and as far by now":                 {acknowledged: 2, current: 1, now: 2},
		"nothing is there that has the term":           {acknowledged: 5, now: 5},
	} {
		for _, guard := range []doc.Numbers{{}, {SeqNo: 3, PrimaryTerm: 1}} {
			c := New(Options{Engine: &clusters{terms: map[string]int64{"anna": test.now}}})
			f := &Conflict{Guard: guard, Index: "shop", Sent: time.Now().Add(-time.Second), Answered: time.Now(), Shard: "0", Term: test.acknowledged}
			if got := c.SamePrimary(t.Context(), asker("anna"), f, test.current); got != test.same {
				t.Errorf("%s, over %v: got %v", name, guard, got)
			}
		}
	}
}

func (c *clusters) PrimaryTerm(_ context.Context, caller es.Caller, _ es.Shard, _ string) (int64, error) {
	return c.terms[string(caller.Params)], nil
}
