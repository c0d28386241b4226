package proxy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimist/internal/api"
)

// framing is a request that two parsers may read differently, from testdata/framings.json, which other tests read, too. Its bytes are the
// code points of its text.
type framing struct {
	Name    string
	Request string
	Repeat  string // follows so many times, and then what comes after it
	Times   int
	After   string
	Status  int
	Type    string
}

func (f *framing) bytes() string {
	var b []byte
	for _, r := range f.Request + strings.Repeat(f.Repeat, f.Times) + f.After {
		b = append(b, byte(r))
	}
	return string(b)
}

func framings(t *testing.T) (list []framing) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "framings.json"))
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) < 40 {
		t.Fatal(err, len(list))
	}
	return list
}

// TestHTTP09IsRefusedAtOnce: its client sends one line, and waits for the answer.
func TestHTTP09IsRefusedAtOnce(t *testing.T) {
	addr, _ := newProxy(t, newStub(t, nil), nil)
	c := dial(t, addr)
	c.send("GET /\r\n")
	wantError(t, c.answer("GET"), 400, TypeInvalid)
	c.gone()
}

// TestAmbiguousFramingIsRefused sends what two parsers could read differently, with a second request behind it. Each must be
// refused in the engine's shape, the connection closed, and nothing may reach the engine: not the request, not its tail.
func TestAmbiguousFramingIsRefused(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, tt := range framings(t) {
		t.Run(tt.Name, func(t *testing.T) {
			s := newStub(t, nil)
			told := new(counters)
			addr, _ := newProxy(t, s, func(o *Options) { o.Metrics = told })
			c := dial(t, addr)
			c.send(tt.bytes(), smuggled, smuggled)
			a := c.answer("POST")
			wantError(t, a, tt.Status, tt.Type)
			if a.field("Connection") != "close" {
				t.Errorf("the answer doesn't say that the connection ends: %q", a.head)
			}
			if err := c.endSending(); err != nil {
				t.Fatal(err)
			}
			c.closed()
			for _, r := range s.requests() {
				// A chunked body is found out while it is streamed, when its head has gone; the node must not have got an end of it.
				t.Errorf("reached the engine: %q %q", r.head, r.body)
			}
			if told.failures(tt.Type) != 1 {
				t.Errorf("not counted")
			}
		})
	}
}

func TestRequestBehindARefusedOneIsNotServed(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET /first HTTP/1.1", "Host: h"), "POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\nx", lines("GET /third HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	wantError(t, c.answer("POST"), 400, TypeInvalid)
	_ = c.endSending()
	c.closed()
	if got := s.requests(); len(got) != 1 || !strings.HasPrefix(got[0].head, "GET /first ") {
		t.Fatalf("upstream got %+q", got)
	}
}

func TestAmbiguousAnswerIsRefused(t *testing.T) {
	for name, head := range map[string][]string{
		"both framings": {"HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"},
		"two lengths":   {"HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 3"},
		"not HTTP":      {"SSH-2.0-OpenSSH_9.2"},
		"switch":        {"HTTP/1.1 101 Switching Protocols", "Upgrade: websocket"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) { c.say("{}", head...) })
			told := new(counters)
			addr, _ := newProxy(t, s, func(o *Options) { o.Metrics = told })
			c := dial(t, addr)
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
			wantError(t, c.answer("PUT"), 504, TypeUnknown)
			c.send(lines("GET /a/_doc/1 HTTP/1.1", "Host: h"))
			wantError(t, c.answer("GET"), 502, TypeLost)
			eventually(t, "the count", func() bool { return told.answered(api.Index, 5) == 1 && told.answered(api.Get, 5) == 1 })
		})
	}
}
