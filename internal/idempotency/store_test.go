package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"optimist/internal/embedded"
	"optimist/internal/enginetest"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func key(name, request string) Key { return NewKey([]byte("me"), name, []byte(request)) }

func newStore(e *enginetest.Engine, now *time.Time) *Store {
	return New(Options{Upstream: e, Index: "keys", Keep: time.Hour, Now: func() time.Time { return *now }})
}

func answer(body string) *Answer {
	return &Answer{Status: 201, Fields: []wire.Field{{Name: []byte("X"), Value: []byte("y")}}, Body: []byte(body)}
}

func (a *Answer) String() string {
	if a == nil {
		return "no answer"
	}
	return fmt.Sprintf("%d %s %s", a.Status, a.Fields, a.Body)
}

// A record goes through its whole life, though any one of the requests for it loses its answer, applied or not.
func TestARecordOutlivesALostAnswer(t *testing.T) {
	for n := 0; ; n++ {
		hit := false
		for _, applied := range []bool{true, false} {
			now := time.Now()
			e := enginetest.New()
			count := 0
			lost := func() bool { count++; return count == n+1 }
			if applied {
				e.After = func(*upstream.Request, *upstream.Response) error {
					if lost() {
						hit = true
						return enginetest.ErrLost
					}
					return nil
				}
			} else {
				e.Before = func(context.Context, *upstream.Request) (*upstream.Response, error) {
					if lost() {
						hit = true
						return nil, enginetest.ErrLost
					}
					return nil, nil
				}
			}
			s := newStore(e, &now)
			c, a, pending, err := s.Begin(t.Context(), key("k", "r"))
			if err != nil { // a read that was lost: nothing was done
				if c != nil || a != nil || !errors.Is(err, ErrStore) {
					t.Fatal(n, applied, c, a, err)
				}
				continue
			}
			if c == nil || pending {
				t.Fatal(n, applied, c, a, pending)
			}
			first, err := c.Complete(t.Context(), answer("done"))
			if first.String() != answer("done").String() {
				t.Error(n, applied, first, err)
			}
			e.After, e.Before = nil, nil
			c, a, _, again := newStore(e, &now).Begin(t.Context(), key("k", "r"))
			if err == nil && (c != nil || again != nil || a.String() != answer("done").String()) ||
				err != nil && (c == nil || !errors.Is(c.Unsettled(), ErrUnderWay)) {
				t.Errorf("%d, applied %v: %v; then %v %v %v", n, applied, err, c, a, again)
			}
		}
		if !hit {
			break
		}
	}
}

// Something between optimist and the engine may answer a write with a success, and send nothing on, or hide the engine's answer. Without a
// record, a repeat would be carried out.
func TestASuccessThatIsNotTheEnginesMakesNoRecord(t *testing.T) {
	for _, page := range []string{"", "<html>please log in</html>", `{"acknowledged":true}`} {
		for _, applied := range []bool{true, false} {
			now, e, hit := time.Now(), enginetest.New(), false
			first := func(r *upstream.Request) bool {
				is := !hit && r.Method == http.MethodPut && strings.Contains(string(r.Target), "_doc")
				hit = hit || is
				return is
			}
			if applied {
				e.After = func(r *upstream.Request, res *upstream.Response) error {
					if first(r) {
						*res = *enginetest.Response(http.StatusOK, page)
					}
					return nil
				}
			} else {
				e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
					if first(r) {
						return enginetest.Response(http.StatusOK, page), nil
					}
					return nil, nil
				}
			}
			if c, _, pending, err := newStore(e, &now).Begin(t.Context(), key("k", "r")); c == nil || pending || err != nil || !hit {
				t.Fatal(page, applied, c, pending, err, hit)
			}
			if c, _, pending, err := newStore(e, &now).Begin(t.Context(), key("k", "r")); c == nil || !pending || err != nil {
				t.Errorf("%q, applied %t: a repeat is carried out: %v %v", page, applied, pending, err)
			}
		}
	}
}

func TestAKeyIsForOneRequest(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	one, two := newStore(e, &now), newStore(e, &now)
	c, _, _, err := one.Begin(t.Context(), key("k", "r"))
	if err != nil {
		t.Fatal(err)
	}
	for who, s := range map[string]*Store{"here": one, "there": two} {
		if _, _, _, err := s.Begin(t.Context(), key("k", "another")); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", who, err)
		}
	}
	if _, _, _, err := one.Begin(t.Context(), key("k", "r")); !errors.Is(err, ErrUnderWay) {
		t.Error(err)
	}
	p, _, pending, err := two.Begin(t.Context(), key("k", "r"))
	if err != nil || !pending || !errors.Is(p.Unsettled(), ErrUnderWay) {
		t.Error(p, pending, err)
	}
	p.Leave()
	now = now.Add(4 * time.Minute)
	if p, _, _, _ = two.Begin(t.Context(), key("k", "r")); !errors.Is(p.Unsettled(), ErrUnknown) {
		t.Error("nobody can still be at it")
	}
	// The other process finds out what became of the request; the first one comes later, and gives the same answer.
	if a, err := p.Complete(t.Context(), answer("found")); err != nil || string(a.Body) != "found" {
		t.Error(a, err)
	}
	if a, err := c.Complete(t.Context(), answer("mine")); err != nil || string(a.Body) != "found" {
		t.Error(a, err)
	}
	if _, _, _, err := one.Begin(t.Context(), key("k", "another")); !errors.Is(err, ErrOther) {
		t.Error(err)
	}
}

// TestARecordThatArrivesLateBelongsToTheRepeat: no answer comes to the requests that make the record, and one of them arrives late. The
// first client was told that nothing was done.
func TestARecordThatArrivesLateBelongsToTheRepeat(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	c, _, _, err := s.Begin(t.Context(), key("other", "r")) // the index is there
	if err != nil {
		t.Fatal(err)
	}
	c.Leave()
	var late *upstream.Request
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if r.Method == http.MethodGet {
			return nil, nil
		}
		late = r
		return nil, enginetest.ErrLost
	}
	for range 2 {
		if _, _, _, err := s.Begin(t.Context(), key("k", "r")); !errors.Is(err, ErrStore) {
			t.Fatal(err)
		}
	}
	e.Before = nil
	arrive := func() int {
		status, _ := e.Ask(t, late.Method, string(late.Target), string(late.Body))
		return status
	}
	if status := arrive(); status != http.StatusCreated {
		t.Fatal(status)
	}
	now = now.Add(time.Second)
	c, _, pending, err := s.Begin(t.Context(), key("k", "r"))
	if c == nil || pending || err != nil {
		t.Fatal("it isn't carried out", c, pending, err)
	}
	// Nothing was done again, and the request arrives a second time.
	if err := c.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := arrive(); status != http.StatusCreated {
		t.Fatal(status)
	}
	if c, _, pending, err = s.Begin(t.Context(), key("k", "r")); c == nil || pending || err != nil {
		t.Fatal("it isn't carried out", c, pending, err)
	}
	c.Leave() // now nobody knows
	if _, _, pending, err := s.Begin(t.Context(), key("k", "r")); !pending || err != nil {
		t.Error("it is carried out twice", pending, err)
	}
}

// TestAKeyIsForOneWay: a gateway may send requests that differ in a header to different engines. A record of an earlier program says nothing of that.
func TestAKeyIsForOneWay(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	anna, bert := key("k", "r").By([]byte("anna")), key("k", "r").By([]byte("bert"))
	c, _, _, err := s.Begin(t.Context(), anna)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.Begin(t.Context(), bert); !errors.Is(err, ErrOther) {
		t.Error("under way:", err)
	}
	if _, err := c.Complete(t.Context(), answer("done")); err != nil {
		t.Fatal(err)
	}
	if c, a, _, err := s.Begin(t.Context(), bert); c != nil || a != nil || !errors.Is(err, ErrOther) {
		t.Error("done:", c, a, err)
	}
	if _, a, _, err := s.Begin(t.Context(), anna); a.String() != answer("done").String() {
		t.Error("the same:", a, err)
	}
	old, _, _, err := s.Begin(t.Context(), key("old", "r"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Complete(t.Context(), answer("done")); err != nil {
		t.Fatal(err)
	}
	if _, a, _, err := s.Begin(t.Context(), key("old", "r").By([]byte("anna"))); a.String() != answer("done").String() {
		t.Error("an earlier program's:", a, err)
	}
}

func TestARequestThatWasNotDoneLeavesNoRecord(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	c, _, _, _ := s.Begin(t.Context(), key("k", "r"))
	if err := c.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, _, pending, err := s.Begin(t.Context(), key("k", "another")); c == nil || pending || err != nil {
		t.Error(c, pending, err)
	}
}

// TestAPageIsNoMissingRecord: the record is there, and something in front of the engine answers 404 in its place.
func TestAPageIsNoMissingRecord(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	c, _, _, _ := s.Begin(t.Context(), key("k", "r"))
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "GET" && r.Method != "DELETE" {
			return nil, nil
		}
		return enginetest.Response(404, `<html>404 page not found</html>`), nil
	}
	if err := c.Forget(t.Context()); !errors.Is(err, ErrStore) {
		t.Errorf("forget: %v", err)
	}
	if r, err := s.read(t.Context(), key("k", "r")); !errors.Is(err, ErrStore) {
		t.Errorf("read: %v %v", r, err)
	}
}

// What was left in this process, and not recorded, is unknown at once: nobody is at it.
func TestWhatWasLeftHereIsUnknown(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	c, _, _, _ := s.Begin(t.Context(), key("k", "r"))
	c.Leave()
	if c, _, pending, err := s.Begin(t.Context(), key("k", "r")); err != nil || !pending || !errors.Is(c.Unsettled(), ErrUnknown) {
		t.Error(c, pending, err)
	}
}

func TestRecordsExpire(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	var uses []string
	for i := range 5 {
		c, _, _, err := s.Begin(t.Context(), key(fmt.Sprint(i), "r"))
		if err != nil {
			t.Fatal(err)
		}
		pending, _, _, err := newStore(e, &now).Begin(t.Context(), key(fmt.Sprint(i), "r"))
		if err != nil || pending.Use() != c.Use() {
			t.Error("one use has two names", err)
		}
		uses = append(uses, c.Use())
		_, _ = c.Complete(t.Context(), answer("a"))
	}
	if n, err := s.Clean(t.Context()); n != 0 || err != nil {
		t.Error(n, err)
	}
	now = now.Add(time.Hour)
	c, a, pending, err := s.Begin(t.Context(), key("0", "another request"))
	if c == nil || a != nil || pending || err != nil {
		t.Error("an expired key may be used again:", c, a, pending, err)
	}
	if c.Use() == uses[0] || c.DocumentID() == uses[0][:20] {
		t.Error("its second use is as its first")
	}
	if n, err := s.Clean(t.Context()); n != 4 || err != nil {
		t.Error(n, err)
	}
	if status, _ := e.Ask(t, http.MethodGet, "/keys/_doc/"+key("0", "").id, ""); status != 200 {
		t.Error("what is used again stays:", status)
	}
}

func TestAnIndexOfAnotherFormatIsNotUsed(t *testing.T) {
	for _, meta := range []string{``, `,"_meta":{"optimist":{"format":2}}`} {
		now, e := time.Now(), enginetest.New()
		e.Put(t, "/keys", `{"mappings":{"dynamic":false`+meta+`}}`)
		if c, _, _, err := newStore(e, &now).Begin(t.Context(), key("k", "r")); c != nil || !errors.Is(err, ErrStore) {
			t.Errorf("%q: %v", meta, err)
		}
	}
}

// Somebody may delete the index while proxies run. The engine creates it again with the next record: by the template it is an index for
// records, and not one that later proxies refuse.
func TestTheEngineKnowsHowToMakeTheIndexAgain(t *testing.T) {
	now, e, template := time.Now(), enginetest.New(), ""
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if r.Method == http.MethodPut && string(r.Target) == "/_index_template/keys" {
			template = string(r.Body)
			return enginetest.Response(200, `{"acknowledged":true}`), nil
		}
		return nil, nil
	}
	if _, _, _, err := newStore(e, &now).Begin(t.Context(), key("k", "r")); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"index_patterns":["keys"],"priority":1000000,"template":`+settings+`}`, format)
	if template != want {
		t.Errorf("got  %s\nwant %s", template, want)
	}
}

// Somebody has deleted the index of an engine that makes none by itself. optimist makes it again, for the first request that needs it.
func TestAnIndexThatIsDeletedIsMadeAnewWhereTheEngineDoesNot(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		makes := r.Method == http.MethodPut && string(r.Target) == "/keys"
		if !makes && e.Handle(&embedded.Request{Method: "HEAD", Target: "/keys"}).Status == http.StatusNotFound {
			return enginetest.Response(404, `{"error":{"type":"index_not_found_exception","reason":"no such index [keys]"},"status":404}`), nil
		}
		return nil, nil
	}
	s := newStore(e, &now)
	old, _, _, err := s.Begin(t.Context(), key("old", "r"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "newer"} {
		e.Handle(&embedded.Request{Method: "DELETE", Target: "/keys"})
		if c, _, pending, err := s.Begin(t.Context(), key(name, "r")); c == nil || pending || err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := old.Complete(t.Context(), answer("{}")); !errors.Is(err, ErrStore) {
		t.Errorf("a record that is gone: %v", err)
	}
	if _, _, _, err := newStore(e, &now).Begin(t.Context(), key("another", "r")); err != nil {
		t.Errorf("another proxy: %v", err)
	}
}

// Who may not make templates can use keys all the same. The log says once what is missing. An engine in memory has no templates.
func TestWithoutATemplateKeysWork(t *testing.T) {
	for inMemory, told := range map[bool]int{false: 1, true: 0} {
		now, e, log := time.Now(), enginetest.New(), new(bytes.Buffer)
		e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
			if strings.HasPrefix(string(r.Target), "/_index_template/") {
				return enginetest.Response(403, `{"error":{"type":"security_exception","reason":"no manage_index_templates"},"status":403}`), nil
			}
			return nil, nil
		}
		s := New(Options{Upstream: e, Index: "keys", InMemory: inMemory, Now: func() time.Time { return now },
			Log: slog.New(slog.NewTextHandler(log, nil))})
		for _, name := range []string{"a", "b"} {
			if c, _, _, err := s.Begin(t.Context(), key(name, "r")); c == nil || err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := strings.Count(log.String(), "no manage_index_templates"); n != told || strings.Count(log.String(), "level=") != told {
			t.Errorf("in memory %v, the log has: %s", inMemory, log)
		}
	}
}

func FuzzReadKey(f *testing.F) {
	for _, s := range []string{`"a"`, `a`, `"a\"\\b"`, `"`, `""`, `a b`, "\x00", `"a\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		name, found, err := ReadKey([]wire.Field{{Name: []byte("idempotency-key"), Value: value}})
		if !found || (err == nil) != (name != "") || len(name) > maxKey {
			t.Errorf("%q: %q %v %v", value, name, found, err)
		}
		for _, c := range []byte(name) {
			if c < ' ' || c > '~' {
				t.Errorf("%q: %q", value, name)
			}
		}
	})
}

// TestARecordTakesTheConnectionsOfItsClient: clients may use as many keys as they like, and optimist's own connections are for everybody.
func TestARecordTakesTheConnectionsOfItsClient(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	anna := share.Client{Network: 7, Credentials: 1}
	s := newStore(e, &now)
	if err := s.own.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if r.Client != anna || !r.Own {
			t.Errorf("%s %s takes the places of %v", r.Method, r.Target, r.Client)
		}
		return nil, nil
	}
	k := key("k", "r").At(anna)
	c, _, _, err := s.Begin(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, _, _, err = s.Begin(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Complete(t.Context(), answer("done")); err != nil {
		t.Fatal(err)
	}
	if _, a, _, err := s.Begin(t.Context(), k); err != nil || a == nil {
		t.Errorf("%v, %v", a, err)
	}
}

// TestManyKeysOfOneAddressSpoilNoneOfAnother: a record is deleted because nothing was done, and it arrives late all the same. Its key is good
// as long as its owner is known.
func TestManyKeysOfOneAddressSpoilNoneOfAnother(t *testing.T) {
	now, e := time.Now(), enginetest.New()
	s := newStore(e, &now)
	k := key("k", "r").At(share.Client{Network: 1})
	s.setIdler(k, "this process/1")
	for i := range 2 * maxIdle {
		s.setIdler(key(fmt.Sprint(i), "r").At(share.Client{Network: 2, Credentials: uint64(i) + 1}), "this process/2")
	}
	if s.idler(k) == "" {
		t.Error("the owner of another address's key is forgotten")
	}
}
