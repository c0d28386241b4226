package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"
)

// way is a way to exclude others. worker connects one of those who do.
type way struct {
	name   string
	worker func(id int) (locker, error)
}

// locker takes and gives back one lock at a time. It is used by one goroutine.
type locker interface {
	lock(ctx context.Context, name string) error
	unlock(name string) error
	close()
}

// asker sends requests over a connection of its own, none of them twice.
type asker struct {
	client   *fasthttp.HostClient
	req      fasthttp.Request
	res      fasthttp.Response
	requests int64
}

func newAsker(base string) asker {
	u, err := url.Parse(base)
	if err != nil {
		u = &url.URL{Host: base}
	}
	return asker{client: &fasthttp.HostClient{Addr: u.Host, MaxConns: 1, MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true,
		MaxResponseBodySize: 64 << 20}}
}

func (a *asker) ask(method, target, body string) (status int, answer []byte, err error) {
	a.requests++
	a.req.Reset()
	a.req.Header.SetMethod(method)
	a.req.SetRequestURI("http://" + a.client.Addr + target)
	if body != "" {
		a.req.Header.SetContentType("application/json")
		a.req.SetBodyString(body)
	}
	if err := a.client.Do(&a.req, &a.res); err != nil {
		return 0, nil, err
	}
	return a.res.StatusCode(), a.res.Body(), nil
}

func (a *asker) close() { a.client.CloseIdleConnections() }

// throughOptimist takes locks as its clients do. path is what stands before a lock's name.
func throughOptimist(name, base, path string) way {
	return way{name, func(id int) (locker, error) {
		return &optimistLocker{asker: newAsker(base), path: path, owner: "w" + strconv.Itoa(id)}, nil
	}}
}

type optimistLocker struct {
	asker
	path, owner, token string
	ttl                string // 30s
}

func (l *optimistLocker) lock(_ context.Context, name string) error {
	status, body, err := l.ask(http.MethodPut, l.path+name+"?owner="+l.owner+"&ttl="+cmp.Or(l.ttl, "30s")+"&wait=1m", "")
	if err != nil {
		return err
	}
	l.token = gjson.GetBytes(body, "token").Raw
	if status != http.StatusCreated || l.token == "" {
		return fmt.Errorf("no lock: %d %s", status, body)
	}
	return nil
}

func (l *optimistLocker) unlock(name string) error {
	status, body, err := l.ask(http.MethodDelete, l.path+name+"?owner="+l.owner+"&token="+l.token, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("no release: %d %s", status, body)
	}
	return err
}

// poll is how long those wait who look again and again.
const poll = time.Millisecond

// byPolling looks for a document at the engine, and makes it if it isn't there: whoever made it has the lock.
func byPolling(base, index string) way {
	return way{"GET + create, polled", func(id int) (locker, error) {
		return &pollLocker{asker: newAsker(base), index: index, owner: strconv.Itoa(id)}, nil
	}}
}

type pollLocker struct {
	asker
	index, owner string
}

func (l *pollLocker) lock(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		status, body, err := l.ask(http.MethodGet, "/"+l.index+"/_doc/"+name, "")
		if err != nil {
			return err
		}
		if status == http.StatusNotFound {
			status, body, err = l.ask(http.MethodPut, "/"+l.index+"/_create/"+name, `{"owner":"`+l.owner+`"}`)
			switch {
			case err != nil:
				return err
			case status == http.StatusCreated:
				return nil
			}
		}
		if status != http.StatusOK && status != http.StatusConflict {
			return fmt.Errorf("no lock: %d %s", status, body)
		}
		rest(ctx, poll)
	}
	return ctx.Err()
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (l *pollLocker) unlock(name string) error {
	status, body, err := l.ask(http.MethodDelete, "/"+l.index+"/_doc/"+name, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("no release: %d %s", status, body)
	}
	return err
}

// inZooKeeper queues sequential ephemeral nodes, each of which waits for the one before.
func inZooKeeper(addr string) way {
	return way{"ZooKeeper", func(int) (locker, error) {
		c, events, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithLogger(silent{}))
		if err != nil {
			return nil, err
		}
		for e := range events {
			if e.State == zk.StateHasSession {
				break
			}
		}
		return &zkLocker{conn: c}, nil
	}}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

type zkLocker struct {
	conn *zk.Conn
	held *zk.Lock
}

func (l *zkLocker) lock(_ context.Context, name string) error {
	l.held = zk.NewLock(l.conn, "/"+name, zk.WorldACL(zk.PermAll))
	return l.held.Lock()
}

func (l *zkLocker) unlock(string) error { return l.held.Unlock() }
func (l *zkLocker) close()              { l.conn.Close() }

// inMemcached adds a key, which fails while it is there.
func inMemcached(addr string) way {
	return way{"memcached add, polled", func(int) (locker, error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		return &memcachedLocker{conn: c, in: bufio.NewReader(c)}, nil
	}}
}

type memcachedLocker struct {
	conn     net.Conn
	in       *bufio.Reader
	requests int64
}

func (l *memcachedLocker) ask(command string) (string, error) {
	l.requests++
	if _, err := l.conn.Write([]byte(command)); err != nil {
		return "", err
	}
	line, err := l.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (l *memcachedLocker) lock(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		switch said, err := l.ask("add " + name + " 0 60 1\r\n1\r\n"); {
		case err != nil:
			return err
		case said == "STORED":
			return nil
		case said != "NOT_STORED":
			return fmt.Errorf("no lock: %s", said)
		}
		rest(ctx, poll)
	}
	return ctx.Err()
}

func (l *memcachedLocker) unlock(name string) error {
	reply, err := l.ask("delete " + name + "\r\n")
	if err == nil && reply != "DELETED" {
		err = fmt.Errorf("no release: %s", reply)
	}
	return err
}

func (l *memcachedLocker) close() { _ = l.conn.Close() }

// requests are what a locker has asked of the one who keeps the locks, where it does so itself.
func requests(l locker) int64 {
	switch l := l.(type) {
	case *pollLocker:
		return l.requests
	case *memcachedLocker:
		return l.requests
	}
	return 0
}
