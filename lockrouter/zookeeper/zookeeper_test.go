package zookeeper_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/conformance"
	"optimist/lockrouter/zookeeper"
)

func router(t *testing.T, addr string) *lockrouter.Router {
	t.Helper()
	k, err := zookeeper.New(zookeeper.Options{Servers: []string{addr}, SessionTimeout: 200 * time.Millisecond, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := lockrouter.New(lockrouter.Options{Keeper: k, Ability: zookeeper.Ability()})
	t.Cleanup(func() { r.Close(); k.Close() })
	return r
}

// unavailable has every request for a lock answered with a 503.
func unavailable(t *testing.T, r *lockrouter.Router) {
	t.Helper()
	for _, q := range [][3]string{
		{"PUT", "owner=a&wait=0"}, {"PUT", "owner=a&wait=50ms"}, {"PUT", "renew&owner=a&token=1"}, {"DELETE", "owner=a&token=1"}, {"GET", ""},
	} {
		a, err := r.Serve(context.Background(), &lockrouter.Request{Method: q[0], Path: []byte("/_lock/global/a"), Query: []byte(q[1])})
		if err != nil || a.Status != 503 || !strings.Contains(string(a.Body), "lock_store_unavailable") {
			t.Errorf("%s: %v %+v", q, err, a)
		}
	}
}

func TestZooKeeperThatIsAwayIsToldSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	unavailable(t, router(t, addr))
}

// greeting is what a server says first: a session of that time-out.
func greeting(ms uint32, id uint64) string {
	b := binary.BigEndian.AppendUint32(nil, 37)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, ms)
	b = binary.BigEndian.AppendUint64(b, id)
	b = binary.BigEndian.AppendUint32(b, 16)
	return string(b) + strings.Repeat("p", 16) + "\x00"
}

// TestWhatIsNotZooKeeperIsRefused: what is at the port may be anything. None of it may end the proxy, or take its memory.
func TestWhatIsNotZooKeeperIsRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"silence":                  "",
		"HTTP":                     "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
		"an answer of no length":   "\x00\x00\x00\x00",
		"the largest":              "\xff\xff\xff\xff",
		"a greeting too short":     "\x00\x00\x00\x10" + strings.Repeat("x", 16),
		"no time-out":              greeting(0, 1),
		"a time-out of weeks":      greeting(1<<31, 1),
		"an expired session":       greeting(0, 0),
		"an answer without a head": greeting(1000, 1) + "\x00\x00\x00\x01x",
		"then nothing but zeros":   greeting(1000, 1) + strings.Repeat("\x00", 10_000),
		"then an answer too large": greeting(1000, 1) + "\x7f\xff\xff\xff",
		"then a text":              greeting(1000, 1) + "HTTP/1.1 200 OK\r\n\r\n",
		"then answers to nothing":  greeting(1000, 1) + "\x00\x00\x00\x10" + strings.Repeat("\x11", 16),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unavailable(t, router(t, conformance.Accept(t, func(c net.Conn) {
				_, _ = io.WriteString(c, answer)
				_, _ = io.Copy(io.Discard, c)
			})))
		})
	}
}
