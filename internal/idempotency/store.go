package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/quota"
)

// Options are what a Store needs; Upstream and Index are required.
type Options struct {
	Upstream es.Doer
	Index    string
	// InMemory says that the engine is this process's own, which has no index templates.
	InMemory  bool
	Keep      time.Duration // how long a record is kept. Default 24h
	MaxAnswer int64         // up to how many bytes of an answer are kept. Default 1 MiB
	// Patience is how long a request may be under way in another process. Default 3 minutes.
	Patience time.Duration
	// Timeout bounds one request to the engine. Default 5s.
	Timeout time.Duration
	// Undone reports whether what was written under locks with these tokens is undone, or about to be: then the request counts as not
	// carried out, and nothing of it arrives any more. Nil: nothing is ever undone.
	Undone func(ctx context.Context, tokens []int64) (bool, error)
	Log    *slog.Logger
	Now    func() time.Time
}

// Store keeps the records. It is safe for concurrent use; make it with New.
type Store struct {
	o     Options
	index string // as a segment of a path
	self  string // this process

	own    *es.OwnIndex
	active sync.Map // ids of the records whose requests are under way here
	// idle are, by the ids of records, owners for which nothing was carried out. A record of such an owner may still arrive: the next request
	// with the key has the same owner, and so the record is its own.
	idle *quota.Shared[identity.Network, string, string]
}

// maxIdle bounds how many of them are known. If there are too many, the network that has most loses its oldest: if that record arrives, its
// key can't be used any more.
const maxIdle = 4096

// New makes a Store. The index is made by the first request that needs it.
func New(o Options) *Store {
	o.Keep, o.MaxAnswer = cmp.Or(o.Keep, 24*time.Hour), cmp.Or(o.MaxAnswer, 1<<20)
	o.Patience, o.Timeout = cmp.Or(o.Patience, 3*time.Minute), cmp.Or(o.Timeout, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	own := &es.OwnIndex{
		Upstream: o.Upstream, Caller: es.Caller{Own: true}, Timeout: o.Timeout, Name: o.Index, Made: o.Index,
		Settings: fmt.Sprintf(settings, format), Is: "an index for it", Format: format, Err: ErrStore,
		Template: !o.InMemory, Errors: es.OwnErrors{Log: o.Log},
	}
	s := &Store{o: o, index: es.Segment(o.Index), self: rand.Text(), own: own}
	s.idle = quota.NewShared[identity.Network, string, string](maxIdle)
	return s
}

// idler is the owner for which nothing was carried out with the key; "": there is none.
func (s *Store) idler(key Key) string {
	owner, _ := s.idle.Get(key.id)
	return owner
}

// setIdler notes the owner for which nothing was carried out with the key; "": there is none any more.
func (s *Store) setIdler(key Key, owner string) {
	if owner == "" {
		s.idle.Remove(key.id)
		return
	}
	s.idle.Add(key.client.Network, key.id, owner)
}

// Claim is the right to carry a request out. Exactly one of Complete, Forget and Leave ends it.
type Claim struct {
	s   *Store
	key Key
	rec record
}

// Use is a word that stands for this use of the key. All who have a claim of it, the pending ones too, have the same word. After a record
// has expired, the next use has another one.
func (c *Claim) Use() string {
	return base64.RawURLEncoding.EncodeToString(digest([]byte(c.key.id), []byte(c.rec.Owner)))
}

// DocumentID is an id for the document that the request makes and gives none, as long as those that engines make.
func (c *Claim) DocumentID() string { return c.Use()[:20] }

// Begin claims the key: with the claim, the caller carries the request out. If the key was used, Begin returns the answer to the first
// request, and no claim. A pending claim belongs to a request that was begun, and whose end isn't known: with it, the caller may only
// find out. Errors: ErrOther, ErrUnderWay, ErrTooLong and ErrStore. ctx mustn't end with the client: the record would be unknown.
func (s *Store) Begin(ctx context.Context, key Key) (c *Claim, a *Answer, pending bool, err error) {
	if _, busy := s.active.LoadOrStore(key.id, nil); busy {
		return nil, nil, false, s.whileActive(ctx, key)
	}
	owner := cmp.Or(s.idler(key), s.self+"/"+rand.Text())
	switch c, a, pending, err = s.begin(ctx, key, owner); {
	case errors.Is(err, ErrStore):
		s.setIdler(key, owner)
	case err == nil:
		s.setIdler(key, "")
	}
	if c == nil {
		s.active.Delete(key.id)
	}
	return c, a, pending, err
}

// whileActive is what a second request gets while the first is under way in this process.
func (s *Store) whileActive(ctx context.Context, key Key) error {
	if r, err := s.read(ctx, key); err == nil && r != nil && !r.expired(s.o.Now()) {
		return cmp.Or(r.isOf(key), ErrUnderWay)
	}
	return ErrUnderWay
}

func (s *Store) begin(ctx context.Context, key Key, owner string) (c *Claim, a *Answer, pending bool, err error) {
	now := s.o.Now()
	c = &Claim{s: s, key: key, rec: record{Fingerprint: key.fingerprint, Way: key.way, Owner: owner, Since: now.UnixMilli(),
		Until: now.Add(s.o.Keep).UnixMilli()}}
	if s.o.Undone != nil {
		c.rec.Tokens = key.tokens
	}
	for range 3 {
		if err := s.own.Prepare(ctx); err != nil {
			return nil, nil, false, err
		}
		made, err := c.write(ctx)
		if err != nil || made {
			return c.orNil(err), nil, false, err
		}
		r, err := s.read(ctx, key)
		switch {
		case err != nil:
			return nil, nil, false, err
		case r == nil: // it was deleted just now
			c.rec.numbers = doc.Numbers{}
		case r.Owner == owner && r.Since == c.rec.Since: // made by a request whose answer was lost
			c.rec.numbers = r.numbers
			return c, nil, false, nil
		case r.expired(now), r.Owner == owner: // nothing was done for it: an earlier call made it, or one deletes it yet
			c.rec.numbers = r.numbers // in its place
		default:
			if undone, err := s.undone(ctx, key, r); err != nil {
				return nil, nil, false, err
			} else if !undone {
				return s.found(key, r)
			}
			c.rec.numbers = r.numbers // in its place
		}
	}
	return nil, nil, false, fmt.Errorf("%w: others change it at the same time", ErrStore)
}

// undone reports whether the request of a record was carried out, and is undone.
func (s *Store) undone(ctx context.Context, key Key, r *record) (bool, error) {
	if s.o.Undone == nil || len(r.Tokens) == 0 || r.isOf(key) != nil {
		return false, nil
	}
	undone, err := s.o.Undone(ctx, r.Tokens)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return undone, nil
}

func (c *Claim) orNil(err error) *Claim {
	if err != nil {
		return nil
	}
	return c
}

// found is what a request gets whose key is used.
func (s *Store) found(key Key, r *record) (c *Claim, a *Answer, pending bool, err error) {
	if err := r.isOf(key); err != nil {
		return nil, nil, false, err
	}
	if r.Done {
		a, err = r.answer()
		return nil, a, false, err
	}
	return &Claim{s: s, key: key, rec: *r}, nil, true, nil
}

// Unsettled is why the request of a pending claim has no answer: another proxy may still carry it out, or the reason is unknown.
func (c *Claim) Unsettled() error {
	mine := strings.HasPrefix(c.rec.Owner, c.s.self+"/") // and it isn't under way here
	if !mine && c.s.o.Now().Before(time.UnixMilli(c.rec.Since).Add(c.s.o.Patience)) {
		return ErrUnderWay
	}
	return ErrUnknown
}

// Complete records the answer, and gives that which everybody gets: another process may have found out meanwhile what became of the
// request. An error says that it isn't recorded; the answer is true all the same.
func (c *Claim) Complete(ctx context.Context, a *Answer) (*Answer, error) {
	defer c.Leave()
	rec := c.rec
	rec.complete(a, c.s.o.MaxAnswer)
	done := Claim{s: c.s, key: c.key, rec: rec}
	for range 3 {
		ok, err := done.write(ctx)
		if err != nil || ok {
			return a, err
		}
		r, err := c.s.read(ctx, c.key)
		switch {
		case err != nil:
			return a, err
		case r == nil || r.Owner != c.rec.Owner:
			return a, fmt.Errorf("%w: the record is gone", ErrStore)
		case r.Done:
			if first, err := r.answer(); err == nil {
				return first, nil
			}
			return a, nil
		}
		done.rec.numbers = r.numbers // an earlier try of which the answer was lost
	}
	return a, fmt.Errorf("%w: others change it at the same time", ErrStore)
}

// Forget takes the record away: nothing of the request was done, and whoever repeats it may have it carried out.
func (c *Claim) Forget(ctx context.Context) error {
	defer c.Leave()
	if strings.HasPrefix(c.rec.Owner, c.s.self+"/") {
		c.s.setIdler(c.key, c.rec.Owner)
	}
	n := c.rec.numbers
	req := esapi.DeleteRequest{Index: c.s.index, DocumentID: c.key.id, IfSeqNo: new(int(n.SeqNo)), IfPrimaryTerm: new(int(n.PrimaryTerm))}
	a, err := c.s.own.AskFor(ctx, c.key.client, req, false)
	if err == nil && a.Status != http.StatusOK && !a.IsMissing() {
		err = c.s.own.Failure(a)
	}
	return err
}

// Leave lets the record be what it is.
func (c *Claim) Leave() { c.s.active.Delete(c.key.id) }

// write writes the record in the place of the revision that the claim knows, or makes it. ok is false where something else is there.
// After a lost answer it is false, too, and where somebody has deleted the index: the record has to be read.
func (c *Claim) write(ctx context.Context) (ok bool, err error) {
	body, err := json.Marshal(&c.rec)
	if err != nil {
		return false, err
	}
	req := esapi.IndexRequest{Index: c.s.index, DocumentID: c.key.id, OpType: "create", Body: bytes.NewReader(body)}
	if n := c.rec.numbers; n.Known() {
		req.OpType, req.IfSeqNo, req.IfPrimaryTerm = "", new(int(n.SeqNo)), new(int(n.PrimaryTerm))
	}
	a, err := c.s.own.AskFor(ctx, c.key.client, req, false)
	switch {
	case es.IsLost(err):
		return false, nil
	case err != nil:
		return false, err
	case a.Status == http.StatusConflict, a.IsNoIndex():
		return false, nil
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		return false, c.s.own.Failure(a)
	}
	c.rec.numbers = es.ParseItem(a.Body).Numbers
	return true, nil
}

// read reads the key's record; nil if there is none.
func (s *Store) read(ctx context.Context, key Key) (*record, error) {
	a, err := s.own.AskFor(ctx, key.client, esapi.GetRequest{Index: s.index, DocumentID: key.id}, true)
	switch {
	case err != nil:
		return nil, err
	case a.IsMissing():
		if a.IsNoIndex() {
			s.own.Forget()
		}
		return nil, nil
	case a.Status != http.StatusOK:
		return nil, s.own.Failure(a)
	}
	it := es.ParseItem(a.Body)
	return parseRecord(it.Source, it.Numbers)
}
