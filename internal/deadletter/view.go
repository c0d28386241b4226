package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// view is what the records of a topic say, in their order: the letters without their bodies, and the ids of those that are gone, so that
// a late second record of one doesn't bring it back. It takes some 300 bytes a letter, and 100 for one that is gone.
type view struct {
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	letters map[string]viewed
	next    int64         // the offset of the next record
	more    chan struct{} // closed when next grows
}

// viewed is a letter at its last record that counts; nil if that has deleted it.
type viewed struct {
	*Letter
	revision int64
	before   []int64 // its revisions before this one
}

func newView(c *kgo.Client) *view {
	ctx, cancel := context.WithCancel(context.Background())
	v := &view{client: c, cancel: cancel, ended: make(chan struct{}), letters: map[string]viewed{}, more: make(chan struct{})}
	go v.follow(ctx)
	return v
}

func (v *view) close() {
	v.cancel()
	<-v.ended
	v.client.Close()
}

// follow reads the topic to the end of the view. The library asks again for what can't be had now.
func (v *view) follow(ctx context.Context) {
	defer close(v.ended)
	for ctx.Err() == nil {
		got := v.client.PollFetches(ctx)
		if got.IsClientClosed() {
			return
		}
		records := got.Records()
		if len(records) == 0 {
			continue
		}
		v.mu.Lock()
		for _, r := range records {
			v.read(r)
		}
		close(v.more)
		v.more = make(chan struct{})
		v.mu.Unlock()
	}
}

// read takes one record in. What isn't a letter of ours is passed over.
func (v *view) read(r *kgo.Record) {
	v.next = r.Offset + 1
	id, in := string(r.Key), int64(-1)
	for _, h := range r.Headers {
		if n, err := strconv.ParseInt(string(h.Value), 10, 64); h.Key == replacesBy && err == nil {
			in = n
		}
	}
	was := v.letters[id]
	if !validID(id) || in != was.revision {
		return
	}
	is := viewed{revision: r.Offset + 1, before: append(was.before, was.revision)}
	if r.Value != nil {
		l, err := decode(r.Value)
		if err != nil || l.ID != id {
			return
		}
		is.Letter = l.summary()
	}
	v.letters[id] = is
}

// has reports whether all records before the offset are read.
func (v *view) has(offset int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.next >= offset
}

// wait waits until all records before the offset are read.
func (v *view) wait(ctx context.Context, offset int64) error {
	for {
		v.mu.Lock()
		next, more := v.next, v.more
		v.mu.Unlock()
		if next >= offset {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// won waits until the record is read, and tells whether it counts.
func (v *view) won(ctx context.Context, id string, at Revision) error {
	if err := v.wait(ctx, at.n); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return v.counted(id, at)
}

// at reports whether a letter is at a revision.
func (v *view) at(id string, want Revision) error {
	at, ok := v.revision(id)
	switch {
	case !ok:
		return ErrNoLetter
	case at != want:
		return ErrTaken
	}
	return nil
}

// revision is where a letter is.
func (v *view) revision(id string) (Revision, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.letters[id]
	return Revision{n: l.revision}, l.Letter != nil
}

// counted reports whether a record of the letter's was the one that counted.
func (v *view) counted(id string, at Revision) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.letters[id]; l.revision == at.n || slices.Contains(l.before, at.n) {
		return nil
	}
	return ErrTaken
}

func (v *view) list(q *Query) []*Letter {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found []*Letter
	for _, l := range v.letters {
		if l.Letter != nil && q.takes(l.Letter) {
			found = append(found, l.Letter)
		}
	}
	return q.page(found)
}
