package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/client"
	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/rule"
)

// start has an optimist in front of an engine in memory, and returns its URL.
func start() (url string, stop func(), err error) {
	c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\n"), config.Overrides{Listen: "127.0.0.1:0", Upstream: []string{"http://127.0.0.1:1"}})
	if err != nil {
		return "", nil, err
	}
	rules, err := rule.FromConfig(c)
	if err != nil {
		return "", nil, err
	}
	a, err := app.New(app.Options{Config: c, Rules: rules, InMemory: true})
	if err != nil {
		return "", nil, err
	}
	a.Serve()
	return a.URL(), a.Close, nil
}

func started(t *testing.T) (url string) {
	t.Helper()
	url, stop, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// transport looks at requests, and may answer them itself.
type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if res, err := f(r); res != nil || err != nil {
		return res, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

func through(url string, f transport) *client.Client {
	return client.New(url, client.Options{HTTP: &http.Client{Transport: f}})
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func renews(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.Query().Has("renew") }

// add is a change that needs what stands there.
func add(source json.RawMessage) (json.RawMessage, error) {
	var d struct{ N int }
	if source != nil {
		if err := json.Unmarshal(source, &d); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(nil, `{"n":%d}`, d.N+1), nil
}

func read(t *testing.T, c *client.Client, index, id string) (source string) {
	t.Helper()
	_, err := c.Update(t.Context(), index, id, func(s json.RawMessage) (json.RawMessage, error) {
		source = string(s)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestOneWorksAtATime(t *testing.T) {
	for name, lock := range map[string]client.Lock{"global": client.Global("a name/with ü?"), "document": client.Document("shop", "a/b?"),
		"tree": client.Tree("fs", "clinton/my projects")} {
		t.Run(name, func(t *testing.T) {
			c := client.New(started(t), client.Options{})
			var inside, done int
			var last int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 5 {
						err := c.DoInLock(t.Context(), lock, client.LockOptions{Wait: time.Minute}, func(ctx context.Context) error {
							inside++ // the race detector looks on
							defer func() { inside-- }()
							token, ok := client.Token(ctx)
							if inside != 1 || !ok || token <= last {
								t.Errorf("%d are inside, with token %d after %d", inside, token, last)
							}
							last = token
							done++
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if done != 40 {
				t.Errorf("%d were done", done)
			}
		})
	}
}

func TestTheLeaseIsRenewedWhileTheWorkLasts(t *testing.T) {
	url := started(t)
	renewed := make(chan struct{}, 100)
	c := through(url, func(r *http.Request) (*http.Response, error) {
		if renews(r) {
			renewed <- struct{}{}
		}
		return nil, nil
	})
	other := client.New(url, client.Options{})
	lock := client.Global("long")
	err := c.DoInLock(t.Context(), lock, client.LockOptions{TTL: 2 * time.Second, Note: "long work"}, func(ctx context.Context) error {
		for range 4 { // longer than the lease, which is renewed when a third of it is over
			select {
			case <-renewed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		var held *client.Error
		err := other.DoInLock(ctx, lock, client.LockOptions{Wait: -1}, func(context.Context) error { return errors.New("it was called") })
		if !errors.As(err, &held) || held.Type != "lock_held" || held.Status != 409 {
			t.Errorf("another one got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := other.DoInLock(t.Context(), lock, client.LockOptions{Wait: -1}, func(context.Context) error { return nil }); err != nil {
		t.Errorf("it wasn't released: %v", err)
	}
}

func TestWorkEndsWhenItsLeaseIsLost(t *testing.T) {
	for name, refuse := range map[string]transport{
		"optimist says so": func(*http.Request) (*http.Response, error) {
			return answer(410, `{"error":{"type":"lease_expired","reason":"…"},"status":410}`), nil
		},
		"optimist can't be reached": func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") },
		"optimist's store is away":  func(*http.Request) (*http.Response, error) { return answer(503, `{}`), nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := through(started(t), func(r *http.Request) (*http.Response, error) {
				if renews(r) {
					return refuse(r)
				}
				return nil, nil
			})
			before := time.Now()
			const ttl = time.Second
			own := errors.New("the work's own")
			err := c.DoInLock(t.Context(), client.Global("x"), client.LockOptions{TTL: ttl}, func(ctx context.Context) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, client.ErrLeaseLost) {
					t.Errorf("the work ended for %v", cause)
				}
				return own
			})
			if !errors.Is(err, client.ErrLeaseLost) || !errors.Is(err, own) {
				t.Errorf("%v", err)
			}
			if name == "optimist says so" && time.Since(before) < ttl/3 {
				t.Error("it ended before the first renewal")
			}
		})
	}
}

func TestWhoeverLeavesLeavesNoLockBehind(t *testing.T) {
	url := started(t)
	c, lock := client.New(url, client.Options{}), client.Global("x")
	nothing := func(context.Context) error { return nil }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = c.DoInLock(t.Context(), lock, client.LockOptions{}, func(context.Context) error { panic("a defect of the work") })
	}()
	ctx, leave := context.WithCancel(t.Context())
	if err := c.DoInLock(ctx, lock, client.LockOptions{Wait: -1}, func(ctx context.Context) error {
		waiting := make(chan error)
		waits, giveUp := context.WithCancel(ctx)
		asked := make(chan struct{}, 10)
		other := through(url, func(*http.Request) (*http.Response, error) {
			asked <- struct{}{}
			return nil, nil
		})
		go func() { waiting <- other.DoInLock(waits, lock, client.LockOptions{Wait: time.Minute}, nothing) }()
		<-asked
		giveUp()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		leave() // the caller goes, in the midst of the work
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := c.DoInLock(t.Context(), lock, client.LockOptions{}, nothing); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The lock is granted, and the answer lost on its way.
func TestAGrantThatNobodyHeardIsReleased(t *testing.T) {
	url := started(t)
	lost := false
	c := through(url, func(r *http.Request) (*http.Response, error) {
		if lost {
			return nil, nil
		}
		lost = true
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || res.StatusCode != 201 {
			t.Errorf("%v %v", res, err)
		}
		_ = res.Body.Close()
		return nil, io.ErrUnexpectedEOF
	})
	nothing := func(context.Context) error { return nil }
	if err := c.DoInLock(t.Context(), client.Global("x"), client.LockOptions{}, nothing); !errors.Is(err, io.ErrUnexpectedEOF) || !lost {
		t.Errorf("%v", err)
	}
	if err := client.New(url, client.Options{}).DoInLock(t.Context(), client.Global("x"), client.LockOptions{Wait: -1}, nothing); err != nil {
		t.Errorf("it is still held: %v", err)
	}
}

func TestUpdateCountsEveryChange(t *testing.T) {
	c := client.New(started(t), client.Options{})
	const workers, rounds = 8, 10
	var calls atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				w, err := c.Update(t.Context(), "shop", "a/b c", func(s json.RawMessage) (json.RawMessage, error) {
					calls.Add(1)
					return add(s)
				})
				if err != nil || w.Result == "" || w.Version == 0 || w.Outcome == "" {
					t.Errorf("%+v %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := read(t, c, "shop", "a/b c"), fmt.Sprintf(`{"n":%d}`, workers*rounds); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if calls.Load() == workers*rounds {
		t.Error("nobody met anybody: the test shows nothing")
	}
}

func TestUpdateTellsWhatItDidNotDo(t *testing.T) {
	url := started(t)
	c := client.New(url, client.Options{})
	mine := errors.New("mine")
	if _, err := c.Update(t.Context(), "shop", "1", func(json.RawMessage) (json.RawMessage, error) { return nil, mine }); !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
	if got := read(t, c, "shop", "1"); got != "" {
		t.Errorf("there is %s", got)
	}
	var refused *client.Error
	_, err := c.Update(t.Context(), "shop", "1", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"a":`), nil })
	if !errors.As(err, &refused) || refused.Status != 400 || errors.Is(err, client.ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]struct {
		answer  transport
		unknown bool
	}{
		"the connection broke": {func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, true},
		"optimist doesn't know": {func(*http.Request) (*http.Response, error) {
			return answer(504, `{"error":{"type":"unknown_outcome"}}`), nil
		}, true},
		"a gateway says something": {func(*http.Request) (*http.Response, error) { return answer(502, `<html>`), nil }, true},
		"nothing was sent": {func(*http.Request) (*http.Response, error) {
			return answer(503, `{"error":{"type":"overloaded"}}`), nil
		}, false},
		"the engine has no time":     {func(*http.Request) (*http.Response, error) { return answer(429, `{"error":{"type":"x"}}`), nil }, false},
		"it isn't allowed":           {func(*http.Request) (*http.Response, error) { return answer(403, `{"error":"no","status":403}`), nil }, false},
		"it is an answer of nothing": {func(*http.Request) (*http.Response, error) { return answer(400, ``), nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			broken := through(url, func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodPut {
					return nil, nil
				}
				sent++
				return c.answer(r)
			})
			_, err := broken.Update(t.Context(), "shop", "2", add)
			if err == nil || errors.Is(err, client.ErrUnknownOutcome) != c.unknown || sent != 1 {
				t.Errorf("sent %d times: %v", sent, err)
			}
		})
	}
	nobody := client.New("http://127.0.0.1:1", client.Options{})
	if _, err := nobody.Update(t.Context(), "shop", "1", add); err == nil || errors.Is(err, client.ErrUnknownOutcome) {
		t.Errorf("where nobody listens: %v", err)
	}
}

// What isn't a document isn't taken for an absent one, which would be written anew.
func TestUpdateReadsOnlyDocuments(t *testing.T) {
	for _, a := range []struct {
		status int
		body   string
	}{
		{404, `<html>`}, {404, `{"error":"alias [x] missing","status":404}`}, {404, `{}`}, {200, `{}`}, {200, `{"found":true,"_seq_no":1,"_primary_term":1}`},
		{200, `{"found":true,"_source":{}}`}, {503, `{"found":false}`},
	} {
		c := through("http://127.0.0.1:1", func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				t.Errorf("after %d %s it is written", a.status, a.body)
			}
			return answer(a.status, a.body), nil
		})
		if _, err := c.Update(t.Context(), "shop", "1", add); err == nil {
			t.Errorf("%d %s is no error", a.status, a.body)
		}
	}
}

func TestHeadersAndTokensAreSent(t *testing.T) {
	url := started(t)
	var mu sync.Mutex
	var tokens []string
	c := client.New(url+"/", client.Options{Header: http.Header{"authorization": {"Bearer x"}}, HTTP: &http.Client{Transport: transport(
		func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") != "Bearer x" {
				t.Errorf("%s %s has %v", r.Method, r.URL, r.Header)
			}
			if strings.Contains(r.URL.Path, "/_create/") {
				mu.Lock()
				tokens = append(tokens, r.Header.Get("Optimist-Lock-Token"))
				mu.Unlock()
			}
			return nil, nil
		})}})
	var token int64
	err := c.DoInLock(t.Context(), client.Document("shop", "1"), client.LockOptions{}, func(ctx context.Context) error {
		token, _ = client.Token(ctx)
		_, err := c.Update(ctx, "shop", "1", add)
		return err
	})
	if err != nil || len(tokens) != 1 || tokens[0] != fmt.Sprint(token) {
		t.Errorf("%v; tokens %q, want %d", err, tokens, token)
	}
	if _, ok := client.Token(t.Context()); ok {
		t.Error("there is a token outside of a lock")
	}
}

// Numbers beyond those of float64 stay as they are.
func TestBytesStayAsTheyAre(t *testing.T) {
	c := client.New(started(t), client.Options{})
	const odd = `{"n": 12345678901234567890.10,  "ü":"\u00fc"}`
	for range 2 {
		if _, err := c.Update(t.Context(), "shop", "1", func(s json.RawMessage) (json.RawMessage, error) {
			if s != nil && !bytes.Equal(s, []byte(odd)) {
				t.Errorf("read %s", s)
			}
			return json.RawMessage(odd), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
