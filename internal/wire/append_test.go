package wire

import (
	"strings"
	"testing"
)

func request(t *testing.T, raw string) *Head {
	t.Helper()
	var h Head
	if err := h.ReadRequest(newReader(strings.NewReader(raw)), 0); err != nil {
		t.Fatal(err)
	}
	return &h
}

func response(t *testing.T, method, raw string) *Head {
	t.Helper()
	var h Head
	if err := h.ReadResponse(newReader(strings.NewReader(raw)), method, 0); err != nil {
		t.Fatal(err)
	}
	return &h
}

func TestHopByHopFieldsAreNotForwarded(t *testing.T) {
	h := request(t, "POST /x HTTP/1.1\r\nHost: es\r\nConnection: X-Secret, close, te\r\nx-secret: 1\r\nX-Secrets: kept\r\n"+
		"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nProxy-Authenticate: x\r\n"+
		"TE: trailers\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"+
		"connection: X-Other\r\nX-Other: 2\r\nAccept: */*\r\n\r\n")
	if !h.Close {
		t.Error("Close isn't known")
	}
	h.Close = false
	want := "POST /x HTTP/1.1\r\nHost: es\r\nX-Secrets: kept\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n"
	if got := string(h.AppendRequest(nil)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var names []string
	for _, f := range h.EndToEnd(nil) {
		names = append(names, string(f.Name))
	}
	if got := strings.Join(names, " "); got != "Host X-Secrets Accept" {
		t.Errorf("EndToEnd: %s", got)
	}
}

func TestConnectionCannotTakeAwayWhoAsks(t *testing.T) {
	h := request(t, "GET / HTTP/1.1\r\nHost: es\r\nConnection: authorization, ES-Security-RunAs-User, X-Forwarded-For, X-Other\r\n"+
		"Authorization: Basic x\r\nes-security-runas-user: guest\r\nx-forwarded-for: 192.0.2.1\r\nx-other: 1\r\n\r\n")
	want := "GET / HTTP/1.1\r\nHost: es\r\nAuthorization: Basic x\r\nes-security-runas-user: guest\r\nx-forwarded-for: 192.0.2.1\r\n\r\n"
	if got := string(h.AppendRequest(nil)); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestConnectionCannotTakeAwayHostOrFraming(t *testing.T) {
	h := request(t, "PUT / HTTP/1.1\r\nConnection: Host, Content-Length\r\nHost: es\r\ncontent-LENGTH: 03\r\n\r\n")
	want := "PUT / HTTP/1.1\r\nHost: es\r\ncontent-LENGTH: 3\r\n\r\n"
	if got := string(h.AppendRequest(nil)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFramingIsWrittenAsDecidedNotAsRead(t *testing.T) {
	h := request(t, "PUT / HTTP/1.1\r\nContent-Length: 3\r\nHost: es\r\nExpect: 100-Continue\r\n\r\n")
	h.Expect100 = false
	h.Length = 12
	if got, want := string(h.AppendRequest(nil)), "PUT / HTTP/1.1\r\nContent-Length: 12\r\nHost: es\r\n\r\n"; got != want {
		t.Errorf("new length: %q", got)
	}
	h.Body, h.Expect100 = Chunked, true
	if got, want := string(h.AppendRequest(nil)), "PUT / HTTP/1.1\r\nHost: es\r\nExpect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n"; got != want {
		t.Errorf("chunked: %q", got)
	}
	h.Body, h.Expect100 = None, false
	if got, want := string(h.AppendRequest(nil)), "PUT / HTTP/1.1\r\nHost: es\r\n\r\n"; got != want {
		t.Errorf("none: %q", got)
	}
}

func TestAnswersAreForwardedFieldByField(t *testing.T) {
	const fields = "X-elastic-product: Elasticsearch\r\nWarning: 299 a\r\nWarning: 299 b\r\ncontent-type: application/json\r\n"
	for _, c := range []struct{ name, method, raw, want string }{
		{"length", "GET", "HTTP/1.1 200 OK\r\n" + fields + "content-length: 7\r\n\r\n", "HTTP/1.1 200 OK\r\n" + fields + "content-length: 7\r\n\r\n"},
		{"odd reason", "GET", "HTTP/1.0 299 Own Words\r\nConnection: keep-alive\r\nKeep-Alive: x\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 299 Own Words\r\ncontent-length: 0\r\n\r\n"},
		{"HEAD keeps its length", "HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"},
		{"304 keeps its length", "GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"},
		{"204 loses a length that lies", "GET", "HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
		{"204 keeps a length of 0", "GET", "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + fields + "\r\n", "HTTP/1.1 200 OK\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n"},
		{"upgrade offer is dropped", "GET", "HTTP/1.1 426 Upgrade Required\r\nUpgrade: h2c\r\nConnection: Upgrade\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := response(t, c.method, c.raw)
			h.Close, h.KeepAlive = false, false // those of the other connection
			if got := string(h.AppendResponse(nil)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOwnAnswerHasTheUsualReason(t *testing.T) {
	h := Head{Status: 502, Body: Length, Length: 2, Close: true}
	h.Fields = append(h.Fields, Field{Name: []byte("Content-Type"), Value: []byte("application/json")})
	want := "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
	if got := string(h.AppendResponse(nil)); got != want {
		t.Errorf("got %q", got)
	}
	h = Head{Status: 200, Body: UntilClose, KeepAlive: true}
	if got := string(h.AppendResponse(nil)); got != "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestMethodStringKnowsTheUsualOnesWithoutAllocating(t *testing.T) {
	for _, m := range []string{"GET", "DELETE", "QUERY", ""} {
		if got := MethodString([]byte(m)); got != m {
			t.Errorf("%q: %q", m, got)
		}
	}
	put := []byte("PUT")
	if n := testing.AllocsPerRun(100, func() { _ = MethodString(put) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
