package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/share"
)

// counting is an engine that has every index, and counts what it is asked.
type counting struct {
	Engine
	err                   error
	names, wholes, primes int
}

func (c *counting) ResolveIndex(_ context.Context, _ es.Caller, name string) (es.Index, error) {
	c.names++
	return es.Index{Name: name, UUID: "1"}, c.err
}

func (c *counting) SeesWhole(context.Context, es.Caller, string, string) (bool, error) {
	c.wholes++
	return true, nil
}

func (c *counting) PrimaryTerm(context.Context, es.Caller, es.Shard, string) (int64, error) {
	c.primes++
	return 1, nil
}

func at(network identity.Network, who string) Asker {
	a := asker(who)
	a.Caller.Client = share.Client{Network: network}
	return a
}

// TestManyNamesOfOneAddressHaveNoneOfAnotherForgotten: a client makes up names, or credentials, or both.
func TestManyNamesOfOneAddressHaveNoneOfAnotherForgotten(t *testing.T) {
	for name, greedy := range map[string]func(i int) (who, index string){
		"names":       func(i int) (string, string) { return "bert", fmt.Sprint("i", i) },
		"credentials": func(i int) (string, string) { return fmt.Sprint("bert", i), "shop" },
		"both":        func(i int) (string, string) { return fmt.Sprint("bert", i), fmt.Sprint("i", i) },
	} {
		t.Run(name, func(t *testing.T) {
			e, began := &counting{}, time.Now()
			c := New(Options{Engine: e, Now: func() time.Time { return began }})
			use := func(a Asker, index string) {
				t.Helper()
				ix, err := c.Resolve(t.Context(), a, index, 0)
				if err != nil {
					t.Fatal(err)
				}
				if whole, err := c.SeesWhole(t.Context(), a, index, ""); err != nil || !whole {
					t.Fatal(whole, err)
				}
				c.SamePrimary(t.Context(), a, &Conflict{Sent: began.Add(-2), Answered: began.Add(-1), Index: ix.Name, Shard: "0"}, 1)
			}
			anna := at(1, "anna")
			for i := range 10 {
				use(anna, fmt.Sprint("shop", i))
				c.RefusedGuard(anna, fmt.Sprint("shop", i))
			}
			for i := range maxNames + 100 {
				who, index := greedy(i)
				use(at(2, who), index)
				c.RefusedGuard(at(2, who), index)
			}
			*e = counting{}
			for i := range 10 {
				index := fmt.Sprint("shop", i)
				if use(anna, index); !c.Knows(anna.Realm, index) || c.Guardable(anna, Index{Index: es.Index{Name: index}}) {
					t.Errorf("what is known of [%s] is forgotten", index)
				}
				if _, known := c.indices.Peek(incarnation{index, "1"}); !known {
					t.Errorf("since when [%s] is there is forgotten", index)
				}
			}
			if e.names+e.wholes+e.primes > 0 {
				t.Errorf("the engine is asked again: %+v", e)
			}
			for name, n := range map[string]int{"names": c.names.Len(), "uuids": c.uuids.Len(), "refusals": c.noSeqNo.Len(),
				"indices": c.indices.Len(), "primaries": c.primaries.Len()} {
				if n > maxNames {
					t.Errorf("%d %s are remembered", n, name)
				}
			}
		})
	}
}

// TestNobodyKeepsMegabytesByNames: a name in a bulk may be as long as its body. It isn't taken for one that no rule takes, because a date
// expression of any length may stand for any index.
func TestNobodyKeepsMegabytesByNames(t *testing.T) {
	e := &counting{}
	c := New(Options{Engine: e})
	long := "<shop{now" + strings.Repeat("/d", 1<<20) + "}>"
	_, err := c.Resolve(t.Context(), at(1, "anna"), long, 0)
	_, whole := c.SeesWhole(t.Context(), at(1, "anna"), long, "")
	_, learnt := c.Learn(t.Context(), at(1, "anna"), long)
	for _, err := range []error{err, whole, learnt} {
		if !errors.Is(err, doc.ErrNotWritten) || len(err.Error()) > 2*maxName {
			t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
		}
	}
	if n := c.names.Len(); n > 0 || e.names+e.wholes > 0 {
		t.Errorf("%d names are remembered, and the engine was asked %d times", n, e.names+e.wholes)
	}
	body := strings.Repeat("x", 1<<20)
	if _, err := c.Resolve(t.Context(), at(1, "anna"), body[7:11], 0); err != nil {
		t.Fatal(err)
	}
	if c.names.Has(func(k nameKey) bool { return unsafe.StringData(k.name) == unsafe.StringData(body[7:11]) }) {
		t.Error("a name holds the body that it was read from")
	}
}

// TestAStrangerTellsNoMetricNames: they have room for the names of few indices.
func TestAStrangerTellsNoMetricNames(t *testing.T) {
	for status, want := range map[int]string{401: "", 403: "shop " + outcome.ReasonMetadata} {
		told := ""
		c := New(Options{Engine: &counting{err: fmt.Errorf("%w: %w", es.ErrForbidden, &es.StatusError{Status: status})},
			Unguardable: func(index, reason string) { told += index + " " + reason }})
		if ix, err := c.Resolve(t.Context(), at(1, "anna"), "shop", 0); err != nil || ix.Unknown == "" || told != want {
			t.Errorf("%d: %+v, %v, told %q", status, ix, err, told)
		}
	}
}

// TestAnIndexThatIsBlockedIsWhatItWas: a name that a rule takes by its index alone would go unguarded for as long as refusals count.
func TestAnIndexThatIsBlockedIsWhatItWas(t *testing.T) {
	now, e, told := time.Now(), &counting{}, ""
	c := New(Options{Engine: e, Now: func() time.Time { return now }, Unguardable: func(index, reason string) { told += index + " " + reason }})
	before, err := c.Resolve(t.Context(), at(1, "anna"), "shop", 0)
	if err != nil || !before.Exists() {
		t.Fatalf("%+v, %v", before, err)
	}
	e.err = &es.StatusError{Status: 403, Body: []byte(`{"error":{"type":"cluster_block_exception"}}`)}
	now = now.Add(time.Hour)
	if ix, err := c.Resolve(t.Context(), at(1, "anna"), "shop", 0); err != nil || ix.UUID != before.UUID || ix.Unknown != "" {
		t.Errorf("known before: %+v, %v", ix, err)
	}
	// The engine goes on to take writes, so optimist doesn't refuse them.
	if ix, err := c.Resolve(t.Context(), at(1, "anna"), "other", 0); err != nil || ix.Unknown == "" || told != "other "+outcome.ReasonMetadata {
		t.Errorf("never known: %+v, %v, told %q", ix, err, told)
	}
}

// TestAPageDoesntSayWhatAnIndexIs: something in front of the engine may answer for a moment in the engine's place. An index that is known
// stays what it was. One that was never known isn't merged: it may have a pipeline, for example.
func TestAPageDoesntSayWhatAnIndexIs(t *testing.T) {
	now, e, forgotten := time.Now(), &counting{}, 0
	c := New(Options{Engine: e, Now: func() time.Time { return now }, Recreated: func(session.Credentials, string) { forgotten++ }})
	before, err := c.Resolve(t.Context(), at(1, "anna"), "shop", 0)
	if err != nil || !before.Exists() {
		t.Fatalf("%+v, %v", before, err)
	}
	e.err = &es.StatusError{Status: 404, Body: []byte(`<html>404 page not found</html>`)}
	now = now.Add(time.Hour)
	if ix, err := c.Resolve(t.Context(), at(1, "anna"), "shop", 0); err != nil || ix.UUID != before.UUID || ix.Unknown != "" || forgotten > 0 {
		t.Errorf("known before: %+v, %v, forgotten %d times", ix, err, forgotten)
	}
	if ix, err := c.Resolve(t.Context(), at(1, "anna"), "other", 0); err != nil || ix.Unknown != outcome.ReasonMetadata {
		t.Errorf("never known: %+v, %v", ix, err)
	}
	e.err = nil
	now = now.Add(outageAge + time.Millisecond)
	if ix, err := c.Resolve(t.Context(), at(1, "anna"), "other", 0); err != nil || ix.Unknown != "" || !ix.Exists() {
		t.Errorf("a second after the page: %+v, %v", ix, err)
	}
}
