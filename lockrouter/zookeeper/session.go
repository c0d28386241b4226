package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"optimist/internal/hook"
	"optimist/internal/obs"
	"optimist/lockrouter"
)

// Options say where ZooKeeper is. Servers is required; zero values take the defaults that the fields name.
type Options struct {
	// Servers are the servers of one ensemble, as host:port.
	Servers []string
	// Root is the node below which locks are: /optimist.
	Root string
	// SessionTimeout is how long ZooKeeper keeps the leases of a proxy that it doesn't hear from: 5s. The ensemble may shorten or lengthen
	// it.
	SessionTimeout time.Duration
	// Retries is how often a step that found no connection is tried again: 5. Negative: never. RetryDelay is the pause between tries: 1s.
	Retries    int
	RetryDelay time.Duration
	// Foreground and Background are the first letters of the names of waiters' nodes: A and B. The first must come first in the alphabet.
	Foreground, Background string
	// Lapsed is as in lockrouter.Events. Leases that ended because their proxy died aren't counted.
	Lapsed hook.Func2[int, bool]
	Log    *slog.Logger
}

// errAgain reports that a node has changed since a step read it. attempt then runs the step again.
var errAgain = errors.New("the lock has changed")

// session is the connection to ZooKeeper. Its errors are errAgain, if something has changed, or wrap lockrouter.ErrStore.
type session struct {
	conn      *zk.Conn
	requested time.Duration
	granted   *atomic.Int64 // ms that the ensemble has granted; 0: not yet
	line      *line
}

// mostSilence is how long a server may take to greet. Then the next one is tried: one that has just started may take a connection, and
// never greet.
const mostSilence = 2 * time.Second

// dial makes a session, and doesn't wait for it.
func dial(o *Options) (*session, error) {
	s := &session{requested: o.SessionTimeout, granted: new(atomic.Int64), line: new(line)}
	const largest = 4 << 20 // bytes of an answer: the names of 50,000 nodes
	g := guard{min(o.SessionTimeout, mostSilence), largest, s.granted, s.line}
	conn, events, err := zk.Connect(o.Servers, o.SessionTimeout, zk.WithLogger(logger{o.Log}), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(largest), zk.WithHostProvider(&hosts{}), zk.WithDialer(g.dial))
	if err != nil {
		return nil, fmt.Errorf("%w: ZooKeeper: %w", lockrouter.ErrStore, err)
	}
	s.conn = conn
	go func() {
		for e := range events { // until the connection is closed
			if e.State == zk.StateExpired {
				o.Log.Warn("the session with ZooKeeper has expired: the locks of this proxy are free", obs.KeyAddr, e.Server)
			}
		}
	}()
	return s, nil
}

// end ends the session, or only the connection: then its nodes stay for the session's time.
func (s *session) end(keep bool) {
	if keep {
		s.line.cut()
	}
	s.conn.Close()
}

// id names the session; another one has another id.
func (s *session) id() int64 { return s.conn.SessionID() }

// timeout is how long ZooKeeper keeps the nodes of a proxy that it doesn't hear of.
func (s *session) timeout() time.Duration {
	if ms := s.granted.Load(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return s.requested
}

// call makes a request, and waits for the answer no longer than a session lasts: the client itself may wait for longer.
func call[T any](ctx context.Context, s *session, ask func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := ask()
		done <- result{v, err}
	}()
	late := time.NewTimer(s.timeout())
	defer late.Stop()
	var none T
	select {
	case r := <-done:
		return r.value, failure(r.err)
	case <-late.C:
		return none, fmt.Errorf("%w: ZooKeeper doesn't answer", lockrouter.ErrStore)
	case <-ctx.Done():
		return none, fmt.Errorf("%w: ZooKeeper hasn't answered: %w", lockrouter.ErrStore, context.Cause(ctx))
	}
}

// failure says what an error means here.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
		return errAgain
	}
	return fmt.Errorf("%w: ZooKeeper: %w", lockrouter.ErrStore, err)
}

// read reads a node; at is nil if there is none.
func (s *session) read(ctx context.Context, node string) (data []byte, at *zk.Stat, err error) {
	type found struct {
		data []byte
		at   *zk.Stat
	}
	f, err := call(ctx, s, func() (found, error) {
		data, at, err := s.conn.Get(node)
		if errors.Is(err, zk.ErrNoNode) {
			return found{}, nil
		}
		return found{data, at}, err
	})
	return f.data, f.at, err
}

func (s *session) children(ctx context.Context, node string) ([]string, error) {
	return call(ctx, s, func() ([]string, error) {
		names, _, err := s.conn.Children(node)
		return names, err
	})
}

// watch gives what is told when the node changes or goes; there is false if it has gone.
func (s *session) watch(ctx context.Context, node string) (there bool, changes <-chan zk.Event, err error) {
	type found struct {
		there   bool
		changes <-chan zk.Event
	}
	f, err := call(ctx, s, func() (found, error) {
		there, _, changes, err := s.conn.ExistsW(node)
		return found{there, changes}, err
	})
	return f.there, f.changes, err
}

// queue makes a sequential ephemeral node. It closes answered when ZooKeeper has answered, or never will: that may be after it returns.
func (s *session) queue(ctx context.Context, begin string, data []byte, answered chan<- struct{}) error {
	_, err := call(ctx, s, func() (string, error) {
		defer close(answered)
		return s.conn.Create(begin, data, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	})
	return err
}

// multi does several things or nothing.
func (s *session) multi(ctx context.Context, ops ...any) error {
	_, err := call(ctx, s, func() (struct{}, error) {
		done, err := s.conn.Multi(ops...)
		for _, d := range done {
			if errors.Is(d.Error, zk.ErrNoNode) || errors.Is(d.Error, zk.ErrBadVersion) || errors.Is(d.Error, zk.ErrNodeExists) {
				return struct{}{}, d.Error
			}
		}
		return struct{}{}, err
	})
	return err
}

func (s *session) remove(ctx context.Context, node string) error {
	_, err := call(ctx, s, func() (struct{}, error) { return struct{}{}, s.conn.Delete(node, -1) })
	return err
}

// makeLock makes a lock's node, and those above it. It is a container: the ensemble removes it some time after the last request for it.
func (s *session) makeLock(ctx context.Context, node string) error {
	_, err := call(ctx, s, func() (struct{}, error) {
		_, err := s.conn.CreateContainer(node, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNoNode) {
			if err = s.makeAll(path.Dir(node)); err == nil {
				_, err = s.conn.CreateContainer(node, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
			}
		}
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

func (s *session) makeAll(node string) error {
	if node == "/" {
		return nil
	}
	if err := s.makeAll(path.Dir(node)); err != nil {
		return err
	}
	_, err := s.conn.Create(node, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// logger hands on what the client says.
type logger struct{ log *slog.Logger }

// Printf implements zk.Logger.
func (l logger) Printf(format string, args ...any) {
	l.log.Debug("ZooKeeper's client says", obs.KeyReason, fmt.Sprintf(format, args...))
}
