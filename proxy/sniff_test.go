package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const nodesAnswer = `{"_nodes":{"total":2},"cluster_name":"c","nodes":{
  "a":{"name":"n1","http":{"bound_address":["[::1]:9201"],"publish_address":"127.0.0.1:9201","max_content_length_in_bytes":104857600}},
  "b":{"transport":{"publish_address":"10.0.0.2:9300"},"http":{"publish_address" : "es2.local\/10.0.0.2:9200"},"x":1e400}}}`

const nodesRewritten = `{"_nodes":{"total":2},"cluster_name":"c","nodes":{
  "a":{"name":"n1","http":{"bound_address":["[::1]:9201"],"publish_address":"door:9280","max_content_length_in_bytes":104857600}},
  "b":{"transport":{"publish_address":"10.0.0.2:9300"},"http":{"publish_address" : "door:9280"},"x":1e400}}}`

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func TestSniffingClientsStayWithTheProxy(t *testing.T) {
	length := func(s string) string { return fmt.Sprintf("content-length: %d", len(s)) }
	zipped := gzipped(nodesAnswer)
	for name, tt := range map[string]struct {
		target string
		answer []string
		body   string
		want   []string
		body2  string
	}{
		"plain": {"/_nodes/http", []string{"HTTP/1.1 200 OK", "content-type: application/json", length(nodesAnswer)}, nodesAnswer,
			[]string{"HTTP/1.1 200 OK", "content-type: application/json", length(nodesRewritten)}, nodesRewritten},
		"all, query": {"/_nodes/_all/http?timeout=1s", []string{"HTTP/1.1 200 OK", "X-A: 1", "content-type: application/vnd.elasticsearch+json;compatible-with=8", length(nodesAnswer)},
			nodesAnswer, []string{"HTTP/1.1 200 OK", "X-A: 1", "content-type: application/vnd.elasticsearch+json;compatible-with=8", length(nodesRewritten)}, nodesRewritten},
		"list, gzip": {"/_nodes/http,os", []string{"HTTP/1.1 200 OK", "content-encoding: gzip", "content-type: application/json", length(zipped), "X-B: 2"}, zipped,
			[]string{"HTTP/1.1 200 OK", "content-type: application/json", length(nodesRewritten), "X-B: 2"}, nodesRewritten},
		"chunked": {"/_nodes/http", []string{"HTTP/1.1 200 OK", "content-type: application/json", "Transfer-Encoding: chunked"},
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(nodesAnswer), nodesAnswer),
			[]string{"HTTP/1.1 200 OK", "content-type: application/json", "Transfer-Encoding: chunked"}, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(nodesRewritten), nodesRewritten)},
		"error": {"/_nodes/http", []string{"HTTP/1.1 403 Forbidden", "content-type: application/json", length(nodesAnswer)}, nodesAnswer,
			[]string{"HTTP/1.1 403 Forbidden", "content-type: application/json", length(nodesAnswer)}, nodesAnswer},
		"yaml": {"/_nodes/http?format=yaml", []string{"HTTP/1.1 200 OK", "content-type: application/yaml", "content-length: 3"}, "a:b",
			[]string{"HTTP/1.1 200 OK", "content-type: application/yaml", "content-length: 3"}, "a:b"},
		"others": {"/_nodes/stats", []string{"HTTP/1.1 200 OK", "content-type: application/json", length(nodesAnswer)}, nodesAnswer,
			[]string{"HTTP/1.1 200 OK", "content-type: application/json", length(nodesAnswer)}, nodesAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) { c.say(tt.body, tt.answer...) })
			addr, _ := newProxy(t, s, nil)
			c := dial(t, addr)
			for range 2 {
				c.send(lines("GET "+tt.target+" HTTP/1.1", "Host: door:9280", "Accept-Encoding: gzip", "X-C: 3"))
				a := c.answer("GET")
				if a.head != lines(tt.want...) || a.body != tt.body2 {
					t.Fatalf("got\n%s%s\nwant\n%s%s", a.head, a.body, lines(tt.want...), tt.body2)
				}
			}
			got := s.requests()[0].head
			if asked := strings.Contains(got, "Accept-Encoding"); asked != (name == "others") {
				t.Errorf("upstream got %q", got)
			}
		})
	}
}

func TestSniffingAsConfigured(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) { c.ok(nodesAnswer) })
	pass, _ := newProxy(t, s, func(o *Options) { o.Sniffing = SniffPass })
	c := dial(t, pass)
	c.send(lines("GET /_nodes/http HTTP/1.1", "Host: door:9280"))
	if a := c.answer("GET"); a.body != nodesAnswer {
		t.Errorf("%+v", a)
	}
	advertise, _ := newProxy(t, s, func(o *Options) { o.Advertise = "lb.example:443" })
	c = dial(t, advertise)
	c.send(lines("GET /_nodes/http HTTP/1.1", "Host: door:9280"))
	if a := c.answer("GET"); a.body != strings.ReplaceAll(nodesRewritten, "door:9280", "lb.example:443") {
		t.Errorf("%+v", a)
	}
}

func TestUnreadableSniffingAnswerIsRefusedNotPassed(t *testing.T) {
	for name, tt := range map[string][]string{
		"not JSON": {"{", "content-length: 1"}, "unknown coding": {"{}", "content-length: 2", "content-encoding: zstd"},
		"not gzip": {"{}", "content-length: 2", "content-encoding: gzip"},
		// 8 MiB of opening brackets overflow the stack of whatever goes down by recursion, and end the process.
		"nested without end": {strings.Repeat("[", 8<<20), "content-length: 8388608"},
	} {
		s := newStub(t, func(c *stubConn, _ seen) {
			c.say(tt[0], append([]string{"HTTP/1.1 200 OK", "content-type: application/json"}, tt[1:]...)...)
		})
		addr, _ := newProxy(t, s, nil)
		c := dial(t, addr)
		c.send(lines("GET /_nodes/http HTTP/1.1", "Host: h"))
		a := c.answer("GET")
		if a.status != 502 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestAddressesOfHosts(t *testing.T) {
	for host, want := range map[string]string{"a": "a:80", "a:9200": "a:9200", "[::1]": "[::1]:80", "[::1]:9200": "[::1]:9200", "": ":80"} {
		if got := string(addressFor("", []byte(host))); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

func FuzzRewriteAddresses(f *testing.F) {
	for _, s := range []string{nodesAnswer, `{"nodes":[]}`, `{"nodes":{"a":{"http":{"publish_address":"\u0041"}}}}`, `{"nodes":{"":{"http":null}}}`,
		`{"nodes":{"a":{"http":{"publish_address":1}},"a":{"http.publish_address":"x"}}}`, "[]", `"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := rewriteAddresses(body, []byte("door:9280"))
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q", body, out)
		}
		again, err := rewriteAddresses(out, []byte("door:9280"))
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q and then %q, %v", body, out, again, err)
		}
	})
}
