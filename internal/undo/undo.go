// Package undo keeps the writes under a lock in an index of the engine, and undoes them if the holder doesn't release the lock:
// all of them or none.
//
// Each write is noted before it is sent, with the document as it was. The next holder of the lock has to settle the writes that
// were left: see Settle. The package knows neither requests nor leases. It doesn't hide uncommitted writes: everybody can read
// them.
package undo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/hook"
	"optimist/internal/wire"
	"optimist/rewrite/merge"
)

var (
	// ErrStore reports that the journal couldn't be read or written. A write that couldn't be noted must not be sent.
	ErrStore = errors.New("the journal of the lock can't be reached")
	// ErrEnded reports a journal that takes no more writes: its lock was released, or its lease lapsed and its writes are undone. Nothing
	// was sent.
	ErrEnded = errors.New("the lock of this token was released, or its lease has ended and its writes are undone")
	// ErrFull reports a journal that holds as much as it may (undo.max_documents, undo.max_bytes). Nothing was sent.
	ErrFull = errors.New("the lock's journal holds as many writes, or bytes, as it may (undo.max_documents, undo.max_bytes)")
	// ErrBusy reports that another proxy is undoing the writes just now.
	ErrBusy = errors.New("the writes of an earlier holder are being undone")
	// ErrCommitted reports that the writes are committed, and can't be undone any more.
	ErrCommitted = errors.New("the lock was released: its writes stay")
	// ErrTaken reports leases that can't have one journal, because the token of one of them has a journal already. By chance, another lock
	// that was acquired at the same moment may have got the same token. Or the holder already had this lease, with a journal of its own.
	ErrTaken = errors.New("a lock of these is held with undo already, or another lock has got the same token by chance")
	// ErrTwo reports a write under several locks with undo: it couldn't be undone for one of them alone.
	ErrTwo = errors.New("one journal for a write")
	// errLost reports that another proxy has taken over.
	errLost = errors.New("another proxy has taken over")
)

// RefusedError reports a write that can't be undone, and so isn't made under a lock with undo. Nothing was sent.
type RefusedError struct{ Why string }

// Error says why, and what to do.
func (e *RefusedError) Error() string {
	return "under a lock with undo only writes are made that can be undone: " + e.Why +
		". Without the lock's token the write is made, and isn't undone"
}

// Merger merges three ways, as a rule says; a *merge.Merger is one.
type Merger interface {
	Merge(base, sent, current []byte) (merge.Result, error)
	// Repeatable tells whether the change from base to sent may be applied to current, even if it has been applied there already.
	Repeatable(base, sent, current []byte) (bool, error)
}

// Left is what couldn't be undone of a document. Nil images are a document that isn't there.
type Left struct {
	Name               string // of the journal and the document: a rollback that is repeated gives the same name
	Began              time.Time
	Lock, Owner        string
	Index, ID, Routing string
	Rule               string
	Tenant             Tenant
	Why                string
	Current            doc.Revision // the document as it is now
	After, Before      []byte       // the document as the holder left it, and as it was before the holder's writes
}

// Options are what a Store needs. Upstream, Index, Authorization, Merger and Left are required.
type Options struct {
	Upstream es.Doer
	Index    string
	// Authorization is the value of that header field in all requests of the Store: for its journals, and for the documents that it restores.
	Authorization string
	// MaxDocuments and MaxBytes are how many writes one journal holds at most, and how many bytes. Defaults: 10,000, and 64 MiB.
	MaxDocuments int
	MaxBytes     int64
	// Grace is for how long after the end of a journal a rollback looks for documents that late writes create. Default 5s. Negative: it
	// looks for none.
	Grace time.Duration
	// Takeover is how long a proxy that undoes may show no progress before another one takes over. Default 10s.
	Takeover time.Duration
	// Poll is the time between two looks at another proxy's rollback. Default 100ms.
	Poll time.Duration
	// KeepPages is how long the notes of a journal are kept after its end. KeepHeads is how long the record is kept that says that it ended.
	// Defaults: 10m, 24h.
	KeepPages, KeepHeads time.Duration
	// BulkBytes is how many bytes of documents one bulk of a rollback has. Engines take 100 MiB, but a gateway before the engine may take
	// less. Default 8 MiB.
	BulkBytes int
	// Timeout bounds one request to the engine. Default 30s.
	Timeout time.Duration
	// Tenant picks the fields and parameters of a request that name a tenant or a cluster. None of them is a credential. The journal keeps
	// them, and a rollback sends them with the requests that undo the write. Nil: none.
	Tenant func(fields []wire.Field, params []byte) ([]wire.Field, []byte)
	// Merger returns the merger of the rule of that name. If there is no such rule any more, it returns one without strategies.
	Merger func(rule string) Merger
	// Left keeps what couldn't be undone. If it returns an error, the rollback tries again.
	Left func(ctx context.Context, l *Left) error
	// Undone is called for each document that was written through this process, once its write is undone or about to be. by is the client
	// that wrote, and n the revision that its write made. Nil: nobody wants to know.
	Undone func(by any, ref doc.Ref, n doc.Numbers)
	// Fault is called before each step that writes, with its name: an error ends it there, as the end of the process would. For tests.
	Fault  func(step string) error
	Events Events
	Log    *slog.Logger
	Now    func() time.Time
}

// Events are for metrics. Any may be missing. They must not block.
type Events struct {
	Noted hook.Func1[int]         // this number of writes was noted together
	Ended hook.Func1[string]      // a journal ended: committed, or rolled_back
	Undid hook.Func2[string, int] // this number of documents was restored, or left
}

// What travels together.
const (
	pageEntries = 500     // the most writes on one page of a journal, and the most records in one request
	pageBytes   = 8 << 20 // the most bytes on a page of more than one write
	batchDocs   = 200     // the documents that one plan of a rollback has
)

// Store keeps journals. It is safe for concurrent use; make it with New.
type Store struct {
	o     Options
	docs  *es.Client
	index string // as a segment of a path
	self  string // this process

	own   *es.OwnIndex
	swept int64 // the sequence number of the journal at which the last sweep stopped; -1: the next sweep begins with the first

	journals sync.Map // *Journal by token, of writes that were noted here

	mu   sync.Mutex
	seen map[int64]sighting // rollbacks of other proxies, by token
	runs map[int64]*run     // rollbacks of this process, by token
}

// sighting is the state of another proxy's rollback, and the time at which this process first saw that state.
type sighting struct {
	at    doc.Numbers
	since time.Time
}

// New makes a Store. The index is made by the first lock that needs it.
func New(o Options) *Store {
	o.MaxDocuments, o.MaxBytes = cmp.Or(o.MaxDocuments, 10_000), cmp.Or(o.MaxBytes, 64<<20)
	o.Grace, o.Takeover = cmp.Or(o.Grace, 5*time.Second), cmp.Or(o.Takeover, 10*time.Second)
	o.KeepPages, o.KeepHeads = cmp.Or(o.KeepPages, 10*time.Minute), cmp.Or(o.KeepHeads, 24*time.Hour)
	o.Timeout, o.Poll = cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.Poll, 100*time.Millisecond)
	o.BulkBytes = cmp.Or(o.BulkBytes, 8<<20)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{o: o, docs: &es.Client{Upstream: o.Upstream}, index: es.Segment(o.Index), self: rand.Text(), swept: -1,
		seen: map[int64]sighting{}, runs: map[int64]*run{}}
	s.own = &es.OwnIndex{
		Upstream: o.Upstream, Caller: s.caller(&Tenant{}), Timeout: o.Timeout, Name: o.Index, Made: o.Index + generation,
		Settings: fmt.Sprintf(settings, o.Index, format), Is: "an index of journals", Format: format, Err: ErrStore,
		Errors: es.OwnErrors{Log: o.Log},
	}
	return s
}

// fault is where a test ends the process.
func (s *Store) fault(step string) error {
	if s.o.Fault == nil {
		return nil
	}
	return s.o.Fault(step)
}
