package memcached_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
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

// between is a way to memcached on which the first request that begins so is held up: hold is called with its line before it goes on. If
// hold reports false, memcached gets the request, and the client no answer.
func between(t *testing.T, addr, begin string, hold func(line string) (answers bool)) (wire string) {
	t.Helper()
	var first sync.Once
	return conformance.Accept(t, func(c net.Conn) {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = server.Close() }()
		answers := bufio.NewReader(server)
		for r := bufio.NewReader(c); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			request, forget := line, false
			if word, _, _ := strings.Cut(line, " "); word == "add" || word == "cas" {
				data, _ := r.ReadString('\n')
				request += data
			}
			if strings.HasPrefix(line, begin) {
				first.Do(func() { forget = !hold(line) })
			}
			_, _ = io.WriteString(server, request)
			for answer := " "; !forget && !slices.Contains([]string{"END", "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND"}, answer) &&
				strings.Trim(answer, "0123456789") != ""; {
				whole, err := answers.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, whole)
				answer = strings.TrimSpace(whole)
			}
			if forget {
				_, _ = answers.ReadString('\n') // memcached has done it
				hold("")
				return
			}
		}
	})
}

// TestATokenIsLargerThanThoseOfOwnersBefore: the request by which a gets the lock is late. Meanwhile b has had the lock, and has released it.
func TestATokenIsLargerThanThoseOfOwnersBefore(t *testing.T) {
	addr := start(t)
	late, goOn := make(chan struct{}), make(chan struct{})
	wire := between(t, addr, "add optimist-/_lock/global/a ", func(string) bool { close(late); <-goOn; return true })
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

// TestTwoRequestsOfAnOwnerGetOneLease: a second request of the same owner comes while the first one draws its token. None of them waits.
func TestTwoRequestsOfAnOwnerGetOneLease(t *testing.T) {
	addr := start(t)
	late, goOn := make(chan struct{}), make(chan struct{})
	wire := between(t, addr, "incr ", func(string) bool { close(late); <-goOn; return true })
	first := router(t, memcached.Options{Servers: []string{wire}, Timeout: time.Minute})
	second := router(t, memcached.Options{Servers: []string{addr}, Timeout: time.Minute})
	got := make(chan string)
	go func() {
		_, body := put(t, first, "a", "owner=a&wait=0")
		got <- body
	}()
	<-late
	_, b := put(t, second, "a", "owner=a&wait=0")
	close(goOn)
	if body := <-got; gjson.Get(b, "token").Int() == 0 || gjson.Get(body, "token").Int() != gjson.Get(b, "token").Int() {
		t.Errorf("%s, and %s", body, b)
	}
}

// TestALostAnswerTakesNoLeaseBackThatWasReentered: the first request's answer is lost, so that it takes back what it may have got. Before
// that, a second request of the same owner was told that it has the lease.
func TestALostAnswerTakesNoLeaseBackThatWasReentered(t *testing.T) {
	addr := start(t)
	late, goOn := make(chan struct{}), make(chan struct{})
	wire := between(t, addr, "cas ", func(line string) bool {
		if line == "" {
			close(late)
			<-goOn
		}
		return false
	})
	first := router(t, memcached.Options{Servers: []string{wire}, Timeout: time.Minute})
	second := router(t, memcached.Options{Servers: []string{addr}, Timeout: time.Minute})
	got := make(chan int)
	go func() {
		status, _ := put(t, first, "a", "owner=a&wait=0&ttl=20s")
		got <- status
	}()
	<-late
	again, body := put(t, second, "a", "owner=a&wait=0&ttl=30s")
	close(goOn)
	if status := <-got; status != 503 || again != 200 {
		t.Errorf("%d, and %d %s", status, again, body)
	}
	if status, body := put(t, second, "a", "owner=b&wait=0"); status != 409 {
		t.Errorf("another owner got the lock: %d %s", status, body)
	}
}

// TestAnItemWithoutATokenLivesShortly: if the proxy dies before it has put the token in, no client has the lease, and others wait for it.
func TestAnItemWithoutATokenLivesShortly(t *testing.T) {
	var line string
	wire := between(t, start(t), "add optimist-/_lock/global/a ", func(l string) bool { line = l; return true })
	status, body := put(t, router(t, memcached.Options{Servers: []string{wire}, Timeout: 10 * time.Second}), "a", "owner=a&wait=0&ttl=600s")
	if fields := strings.Fields(line); status != 201 || len(fields) != 5 || fields[3] != "61" || gjson.Get(body, "expires_in_ms").Int() < 590_000 {
		t.Errorf("%s: %d %s", line, status, body)
	}
}
