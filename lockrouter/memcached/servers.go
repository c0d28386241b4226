package memcached

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"strconv"

	"github.com/bradfitz/gomemcache/memcache"
)

// servers are addresses that are looked up when they are needed: a server may be away at the start.
type servers []string

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// PickServer finds the one that a key is on.
func (s servers) PickServer(key string) (net.Addr, error) {
	if len(s) == 0 {
		return nil, memcache.ErrNoServers
	}
	sum := sha256.Sum256([]byte(key))
	return address(s[(int(sum[0])<<8|int(sum[1]))%len(s)]), nil
}

// Each calls f with all of them.
func (s servers) Each(f func(net.Addr) error) error {
	for _, a := range s {
		if err := f(address(a)); err != nil {
			return err
		}
	}
	return nil
}

// errNonsense reports an answer that isn't memcached's.
var errNonsense = errors.New("what answers isn't memcached")

// longestItem is how many bytes an item may have: the longest names, each byte written as six.
const longestItem = 64 << 10

// dial connects to a server.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &reader{Conn: c}, nil
}

// reader looks at the first line of each answer: the client takes as much memory as that says, before there is a byte of it.
type reader struct {
	net.Conn
	line []byte // of the answer, as far as it has come
	past bool   // it was read
}

// Write sends a request, to which there is an answer.
func (r *reader) Write(p []byte) (int, error) {
	r.line, r.past = r.line[:0], false
	return r.Conn.Write(p)
}

// Read reads the answer.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if r.past {
		return n, err
	}
	const longest = 512 // a key, and three numbers
	r.line = append(r.line, p[:min(n, longest)]...)
	line, _, ends := bytes.Cut(r.line, []byte("\n"))
	switch {
	case ends:
		r.past = true
	case len(line) > longest:
		return 0, errNonsense
	}
	words := bytes.Fields(line)
	if ends && len(words) > 3 && string(words[0]) == "VALUE" {
		if size, err := strconv.ParseUint(string(words[3]), 10, 64); err != nil || size > longestItem {
			return 0, errNonsense
		}
	}
	return n, err
}
