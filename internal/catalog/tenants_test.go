package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/session"
)

// clusters is an engine behind a gateway: each realm's index is another one.
type clusters struct {
	Engine
	uuids map[string]string // by the value of the client's only field
	terms map[string]int64
}

func (c *clusters) ResolveIndex(_ context.Context, caller es.Caller, name string) (es.Index, error) {
	uuid := c.uuids[string(caller.Params)]
	if uuid == "" {
		return es.Index{}, es.ErrNoIndex
	}
	return es.Index{Name: name, UUID: uuid}, nil
}

func asker(name string) Asker {
	credentials := identity.CredentialsOf([]byte(name))
	return Asker{Realm: credentials, Credentials: credentials, Caller: es.Caller{Params: []byte(name)}}
}

func TestIndicesOfOneNameInTwoClustersAreTwo(t *testing.T) {
	now := time.Unix(0, 0)
	e := &clusters{uuids: map[string]string{"anna": "a1", "bert": "b1"}}
	type renewal struct {
		credentials session.Credentials
		others      []session.Credentials
	}
	var renewed []renewal
	var c *Catalog
	c = New(Options{Engine: e, Now: func() time.Time { return now }, Recreated: func(credentials session.Credentials, index string) {
		renewed = append(renewed, renewal{credentials, c.Others(index, credentials)})
	}})
	ask := func(who string) {
		t.Helper()
		ix, err := c.Resolve(t.Context(), asker(who), "shop", time.Nanosecond)
		if now = now.Add(time.Second); err != nil || ix.UUID != e.uuids[who] {
			t.Fatalf("%s: %+v %v", who, ix, err)
		}
	}
	for range 2 {
		ask("anna")
		ask("bert")
	}
	if len(renewed) > 0 {
		t.Fatalf("%v: nothing was made anew", renewed)
	}
	anna, bert := asker("anna"), asker("bert")
	if got := c.Others("shop", anna.Credentials); !slices.Equal(got, []session.Credentials{bert.Credentials}) {
		t.Errorf("others than Anna's: %v", got)
	}
	e.uuids["anna"] = "a2"
	ask("anna")
	if len(renewed) != 1 || renewed[0].credentials != anna.Credentials || !slices.Equal(renewed[0].others, []session.Credentials{bert.Credentials}) {
		t.Errorf("%v: want Anna's, and Bert is spared", renewed)
	}
	ask("bert")
	if len(renewed) != 1 {
		t.Error("Bert's index is held against Anna's")
	}
	c.RefusedGuard(anna, "shop")
	if ix := (Index{Index: es.Index{Name: "shop"}}); c.Guardable(anna, ix) || !c.Guardable(bert, ix) {
		t.Error("Anna's index has no sequence numbers, Bert's has")
	}
}

// Two clients of one cluster may be told of two indices of a name, the one before the name was made anew and the other after it. That
// doesn't prove that what happens to the one doesn't concern the other.
func TestIndicesThatWereThereOneAfterTheOtherAreOfOneCluster(t *testing.T) {
	now := time.Unix(0, 0)
	e := &clusters{uuids: map[string]string{"anna": "1", "carl": "1"}}
	c := New(Options{Engine: e, Now: func() time.Time { return now }})
	ask := func(who string) {
		_, _ = c.Resolve(t.Context(), asker(who), "shop", time.Nanosecond) // it answers
		now = now.Add(time.Second)
	}
	ask("carl")
	ask("carl")
	e.uuids["anna"], e.uuids["carl"] = "2", "2"
	ask("anna")
	ask("anna")
	if got := c.Others("shop", asker("anna").Credentials); len(got) > 0 {
		t.Errorf("%v: Carl may have read in Anna's index since", got)
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

func (c *clusters) PrimaryTerm(_ context.Context, caller es.Caller, _ es.Shard, _ string) (int64, error) {
	return c.terms[string(caller.Params)], nil
}
