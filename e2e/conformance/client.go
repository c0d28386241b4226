package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// stepTimeout bounds one request: an answer that never ends is a finding, not a reason to wait.
const stepTimeout = 30 * time.Second

// client is HTTP/1.1 on a bare connection, without anything that a library would put right or add.
type client struct {
	address string
	nc      net.Conn
	in      *bufio.Reader
}

// answer is a response as it stood on the wire.
type answer struct {
	interim []int // 1xx before it
	line    string
	status  int
	fields  [][2]string
	body    []byte // without transfer coding
	text    []byte // without content coding either
	closed  bool   // the server closed the connection after it
}

func (a *answer) all(name string) (values []string) {
	for _, f := range a.fields {
		if strings.EqualFold(f[0], name) {
			values = append(values, f[1])
		}
	}
	return values
}

func (a *answer) first(name string) string {
	if v := a.all(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c *client) connect() error {
	if c.nc != nil {
		return nil
	}
	nc, err := net.DialTimeout("tcp", c.address, stepTimeout)
	if err != nil {
		return err
	}
	c.nc, c.in = nc, bufio.NewReader(nc)
	return nil
}

func (c *client) close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// outgoing is a request's bytes.
type outgoing struct {
	method     string
	head, body []byte
	wait       bool // send the body only after a 100
	last       bool // wait for the server to close the connection
}

// do sends a request and reads its answer.
func (c *client) do(o outgoing) (*answer, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.nc.SetDeadline(time.Now().Add(stepTimeout)); err != nil {
		return nil, err
	}
	head := o.head
	if !o.wait {
		head = append(head, o.body...)
	}
	sent := make(chan error, 1)
	go func(nc net.Conn) {
		_, err := nc.Write(head) // beside the reading: an early answer must be seen
		sent <- err
	}(c.nc)
	a, err := c.read(o)
	if err != nil {
		c.close()
		return nil, errors.Join(err, <-sent)
	}
	if a.closed = a.closed || (o.last || strings.EqualFold(a.first("Connection"), "close")) && c.gone(); a.closed {
		c.close()
	}
	if err := <-sent; err != nil && !a.closed {
		return nil, fmt.Errorf("sending: %w", err)
	}
	return a, nil
}

// closeTimeout is how long a server may take to close a connection after it said so.
const closeTimeout = 3 * time.Second

// gone reports whether the server closes the connection.
func (c *client) gone() bool {
	_ = c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
	_, err := c.in.Peek(1)
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

// read reads one answer, with the interim ones before it.
func (c *client) read(o outgoing) (*answer, error) {
	a := &answer{}
	for {
		line, err := c.line()
		if err != nil {
			return nil, fmt.Errorf("status line: %w", err)
		}
		version, rest, _ := strings.Cut(line, " ")
		code, _, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(code)
		if err != nil || !strings.HasPrefix(version, "HTTP/1.") {
			return nil, fmt.Errorf("no status line: %q", line)
		}
		a.line, a.status, a.fields = line, status, nil
		if err := c.readFields(a); err != nil {
			return nil, err
		}
		if status >= 200 {
			break
		}
		a.interim = append(a.interim, status)
		if status == 100 && o.wait {
			if _, err := c.nc.Write(o.body); err != nil {
				return nil, fmt.Errorf("body after 100: %w", err)
			}
			o.wait = false
		}
	}
	if err := c.readBody(o.method, a); err != nil {
		return nil, fmt.Errorf("%s: body: %w", a.line, err)
	}
	return a, a.decode()
}

func (c *client) line() (string, error) {
	s, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(s, "\r\n") {
		return "", fmt.Errorf("bare newline in %q", s)
	}
	return s[:len(s)-2], nil
}

func (c *client) readFields(a *answer) error {
	for {
		line, err := c.line()
		if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		if line == "" {
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("header line %q", line)
		}
		a.fields = append(a.fields, [2]string{name, strings.TrimSpace(value)})
	}
}

func (c *client) readBody(method string, a *answer) error {
	if method == "HEAD" || a.status == 204 || a.status == 304 {
		return nil
	}
	if strings.EqualFold(a.first("Transfer-Encoding"), "chunked") {
		return c.readChunks(a)
	}
	lengths := a.all("Content-Length")
	if len(lengths) == 0 {
		var err error
		a.body, err = io.ReadAll(c.in)
		a.closed = true
		return err
	}
	n, err := strconv.Atoi(lengths[0])
	if err != nil || len(lengths) > 1 {
		return fmt.Errorf("content-length %q", lengths)
	}
	a.body = make([]byte, n)
	_, err = io.ReadFull(c.in, a.body)
	return err
}

func (c *client) readChunks(a *answer) error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 32)
		if err != nil {
			return fmt.Errorf("chunk size %q", line)
		}
		if n == 0 {
			return c.readFields(&answer{}) // trailers
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, chunk); err != nil {
			return err
		}
		a.body = append(a.body, chunk[:n]...)
	}
}

// decode undoes the content coding.
func (a *answer) decode() error {
	a.text = a.body
	if a.first("Content-Encoding") != "gzip" || len(a.body) == 0 {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("content-encoding says gzip: %w", err)
	}
	a.text, err = io.ReadAll(z)
	return err
}
