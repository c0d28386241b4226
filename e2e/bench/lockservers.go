package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"optimist/e2e/optimist"
)

// lockSite is where locks are measured: one engine, optimists in front of it, and the other systems that are installed.
type lockSite struct {
	*stage
	engine   string
	title    string
	plain    *optimist.Process
	counting []*optimist.Process // as the first ways, but they ask the engine through counter
	counter  *counter
	calm     time.Duration
	ways     []way    // of the contended lock
	missing  []string // what isn't installed, with its command
}

const pollIndex = "bench-polled-locks"

func openLockSite(ctx context.Context, st *stage, url string) (s *lockSite, err error) {
	s = &lockSite{stage: st, engine: url, title: url}
	if url == "" {
		if s.engine, s.title, err = s.startEngine(ctx, "opensearch", "1g"); err != nil {
			return nil, err
		}
	}
	const index = `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`
	_, _ = send(ctx, http.DefaultClient, http.MethodDelete, s.engine+"/"+pollIndex, "") // of a run before, on an engine that stays
	if status, err := send(ctx, http.DefaultClient, http.MethodPut, s.engine+"/"+pollIndex, index); err != nil || status != http.StatusOK {
		return s, fmt.Errorf("making the index: status %d, %w", status, err)
	}
	if s.counter, err = startCounter(ctx, s.engine); err != nil {
		return s, err
	}
	return s, errors.Join(s.optimists(ctx), s.others(ctx))
}

// optimists starts one for each way that locks can go, and one for each that is counted.
func (s *lockSite) optimists(ctx context.Context) error {
	for _, kind := range []struct{ name, config string }{
		{"optimist", "limits: {max_connections: 20000}\n"}, // for the crowd
		{"optimist, locks.chain: 0", "locks: {chain: 0}\n"},
	} {
		for _, upstream := range []string{s.engine, s.counter.url} {
			p, err := s.startOptimist(ctx, optimist.Options{Upstream: []string{upstream}, Config: kind.config})
			if err != nil {
				return err
			}
			switch {
			case upstream != s.engine:
				s.counting = append(s.counting, p)
				continue
			case s.plain == nil:
				s.plain = p
			}
			s.ways = append(s.ways, throughOptimist(kind.name, p.URL, "/_lock/global/"))
		}
	}
	return nil
}

// others starts the other systems.
func (s *lockSite) others(ctx context.Context) error {
	p, err := startZooKeeper(ctx, s.dir)
	switch {
	case err != nil:
		return err
	case p == nil:
		s.missing = append(s.missing, "ZooKeeper (Debian: apt-get install zookeeper)")
	default:
		s.atEnd(p.end)
		s.ways = append(s.ways, inZooKeeper(p.addr))
	}
	binary, ok := find("memcached")
	if !ok {
		s.missing = append(s.missing, "memcached (Debian: apt-get install memcached)")
	} else {
		addr, err := freeAddr()
		if err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		p, err := startCommand(ctx, addr, binary, "-l", host, "-p", port, "-U", "0", "-u", "nobody")
		if err != nil {
			return err
		}
		s.atEnd(p.end)
		s.ways = append(s.ways, inMemcached(p.addr))
	}
	s.ways = append(s.ways, byPolling(s.engine, pollIndex))
	return nil
}

const zooCfg = `tickTime=2000
dataDir=%s
clientPortAddress=%s
clientPort=%s
maxClientCnxns=0
admin.enableServer=false
`

// startZooKeeper starts one server, which writes its log to the disk before it answers, as it does by default; nil if it isn't installed.
func startZooKeeper(ctx context.Context, dir string) (*process, error) {
	jars, _ := filepath.Glob("/usr/share/java/zookeeper*.jar")
	java, err := exec.LookPath("java")
	if len(jars) == 0 || err != nil {
		return nil, nil
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, zooCfg, filepath.Join(dir, "data"), host, port), 0o600); err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "log4j.properties")
	if err := os.WriteFile(log, []byte("log4j.rootLogger=OFF\n"), 0o600); err != nil {
		return nil, err
	}
	return startCommand(ctx, addr, java, "-Xmx512m", "-Dlog4j.configuration=file:"+log, "-cp", "/usr/share/java/*",
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
}

// counter forwards to the engine and counts what it forwards. What goes through it isn't timed.
type counter struct {
	url string
	n   atomic.Int64
}

func startCounter(ctx context.Context, upstream string) (*counter, error) {
	client := &fasthttp.HostClient{Addr: strings.TrimPrefix(upstream, "http://"), MaxConns: 4096, MaxIdemponentCallAttempts: 1}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{url: "http://" + ln.Addr().String()}
	server := &fasthttp.Server{MaxRequestBodySize: 100 << 20, Handler: func(rc *fasthttp.RequestCtx) {
		c.n.Add(1)
		if err := client.Do(&rc.Request, &rc.Response); err != nil {
			rc.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}}
	go func() { _ = server.Serve(ln) }() // until the program ends
	return c, nil
}
