package memcached_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/lockrouter"
	"optimist/lockrouter/conformance"
	"optimist/lockrouter/memcached"
)

// start starts memcached itself, and gives its address.
func start(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		t.Skip("memcached isn't installed: apt-get install -y memcached")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "16", "-u", "nobody", "-M")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		<-time.After(5 * time.Millisecond)
	}
}

func router(t *testing.T, o memcached.Options) *lockrouter.Router {
	k := memcached.New(o)
	r := lockrouter.New(lockrouter.Options{Keeper: k, Ability: memcached.Ability(), Foreground: 20 * time.Second, Background: 20 * time.Second})
	t.Cleanup(func() { r.Close(); k.Close() })
	return r
}

func TestLocksInMemcached(t *testing.T) {
	addr := start(t)
	conformance.Run(t, "", func(t *testing.T) conformance.Store {
		s := conformance.Store{Name: "memcached", BestEffort: true}
		for range 2 {
			s.Proxies = append(s.Proxies, router(t, memcached.Options{Servers: []string{addr}, Delay: 5 * time.Millisecond, Timeout: 10 * time.Second}))
		}
		return s
	})
}

func put(t *testing.T, r *lockrouter.Router, name, query string) (int, string) {
	t.Helper()
	a, err := r.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte("/_lock/global/" + name), Query: []byte(query)})
	if err != nil {
		t.Fatal(err)
	}
	return a.Status, string(a.Body)
}

func TestMemcachedThatIsAwayIsToldSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	if status, body := put(t, router(t, memcached.Options{Servers: []string{addr}}), "a", "owner=a&wait=0"); status != 503 || !strings.Contains(body, "lock_store_unavailable") {
		t.Errorf("%d %s", status, body)
	}
}

// TestNonsenseIsNoLock: what is at the port may be anything.
func TestNonsenseIsNoLock(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\n", "\r\n", "END", "VALUE x 0 4294967295 1\r\n", "VALUE x 0 9999999999999999999999 1\r\n",
		"VALUE x 0 3 1\r\nabc\r\nEND\r\n", "VALUE x 0 2 1\r\n{}\r\nEND\r\n", strings.Repeat("x", 10_000), "\x00\xff\x01\n",
		"VALUE \r\n", "STORED\r\nSTORED\r\n", "VALUE x 0 -1 1\r\n",
	} {
		t.Run(fmt.Sprintf("%.20q", answer), func(t *testing.T) {
			addr := conformance.Accept(t, func(c net.Conn) {
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil || errors.Is(err, io.EOF) {
					_, _ = io.WriteString(c, answer)
				}
			})
			r := router(t, memcached.Options{Servers: []string{addr}})
			if status, body := put(t, r, "a", "owner=a&wait=0"); status != 503 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// TestALeaseThatIsReenteredIsCountedFromTheCall: memcached may be late with its answer, and counts the item's time from the call.
func TestALeaseThatIsReenteredIsCountedFromTheCall(t *testing.T) {
	const late = 200 * time.Millisecond
	addr := conformance.Accept(t, func(c net.Conn) {
		const item = `{"owner":"a","token":1,"ttl":30000}`
		for lines := bufio.NewScanner(c); lines.Scan(); {
			switch word, _, _ := strings.Cut(lines.Text(), " "); word {
			case "gets":
				_, _ = fmt.Fprintf(c, "VALUE optimist-/_lock/global/a 0 %d 1\r\n%s\r\nEND\r\n", len(item), item)
			case "cas":
				lines.Scan()
				<-time.After(late)
				_, _ = io.WriteString(c, "STORED\r\n")
			}
		}
	})
	r := router(t, memcached.Options{Servers: []string{addr}, Timeout: 10 * time.Second})
	began := time.Now()
	status, body := put(t, r, "a", "owner=a&ttl=30s&wait=0")
	if waited := gjson.Get(body, "waited_ms"); status != 200 || time.Duration(waited.Int())*time.Millisecond > time.Since(began)-late {
		t.Errorf("%d %s, after %s", status, body, time.Since(began))
	}
}

// TestATokenIsLargerThanThoseOfOwnersBefore: the request by which a gets the lock is late. Meanwhile b has had the lock, and has released it.
func TestATokenIsLargerThanThoseOfOwnersBefore(t *testing.T) {
	addr := start(t)
	late, goOn := make(chan struct{}), make(chan struct{})
	wire := conformance.Accept(t, func(c net.Conn) {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = server.Close() }()
		go func() { _, _ = io.Copy(c, server) }()
		for r := bufio.NewReader(c); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "add optimist-/_lock/global/a ") {
				close(late)
				<-goOn
			}
			_, _ = io.WriteString(server, line)
		}
	})
	slow := router(t, memcached.Options{Servers: []string{wire}, Timeout: time.Minute})
	other := router(t, memcached.Options{Servers: []string{addr}, Timeout: time.Minute})
	got := make(chan string)
	go func() {
		_, body := put(t, slow, "a", "owner=a&wait=0")
		got <- body
	}()
	<-late
	_, b := put(t, other, "a", "owner=b&wait=0")
	token := gjson.Get(b, "token").Int()
	a, err := other.Serve(t.Context(), &lockrouter.Request{Method: "DELETE", Path: []byte("/_lock/global/a"),
		Query: fmt.Appendf(nil, "owner=b&token=%d", token)})
	if err != nil || a.Status != 200 {
		t.Errorf("release: %v %+v", err, a)
	}
	close(goOn)
	if body := <-got; token == 0 || gjson.Get(body, "token").Int() <= token {
		t.Errorf("%s, after %s", body, b)
	}
}
