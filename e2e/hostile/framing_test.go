package hostile

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// framing is a request that two parsers may read differently. Its bytes are the code points of its text.
type framing struct {
	Name, Request, Repeat, After string
	Times                        int
}

// framings are the door's own cases.
func framings(t *testing.T) (list []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "proxy", "testdata", "framings.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []framing
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, f := range cases {
		var b []byte
		for _, r := range f.Request + strings.Repeat(f.Repeat, f.Times) + f.After {
			b = append(b, byte(r))
		}
		list = append(list, string(b))
	}
	return list
}

// smuggled stands behind a request whose body it is. Whoever sees it as a request has read the first one in another way than the door.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

// TestMutatedFramingsSmuggleNothing sends requests whose body is a second request, with framings that were changed at random. The door may
// refuse them, or forward them with that body; the engine must never see the second request as one. At the end the process still serves.
func TestMutatedFramingsSmuggleNothing(t *testing.T) {
	var found, forwarded atomic.Int64
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/smuggled":
			found.Add(1)
		case "/first":
			forwarded.Add(1)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(engine.Close)
	g := startAt(t, engine.URL, "")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	seeds, times := framings(t), 1000
	if long() {
		times = 100_000
	}
	for range times {
		request := mutated(random, seeds[random.IntN(len(seeds))])
		g.say(t, request)
		if found.Load() > 0 {
			t.Fatalf("the engine got the second request of %q", request)
		}
	}
	t.Logf("%d of %d were forwarded", forwarded.Load(), times)
	if forwarded.Load() == 0 {
		t.Error("none was forwarded: the mutations don't try anything")
	}
	if a := g.ask(t, http.MethodGet, "/", ""); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// mutated is a request with a body of a known length, and with one or two lines of a framing from elsewhere.
func mutated(random *rand.Rand, from string) string {
	head, _, _ := strings.Cut(from, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")[1:]
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	lines = lines[:min(len(lines), 1+random.IntN(3))]
	for i, line := range lines {
		if line != "" && len(line) < 200 && random.IntN(2) == 0 {
			at := random.IntN(len(line))
			put := []string{" ", "\t", "\x0b", "\r", "\n", "\x00", ",", ";", "+", "0", "\xff", "chunked", "\r\n "}[random.IntN(13)]
			if mutant := line[:at] + put + line[at+random.IntN(2):]; !strings.HasPrefix(mutant, "\r\n") { // that would end the head, and the body be another
				lines[i] = mutant
			}
		}
	}
	length := "Content-Length: " + []string{"35", "0035", "35 ", "\t35"}[random.IntN(4)]
	at := random.IntN(len(lines) + 1)
	lines = append(lines[:at:at], append([]string{length}, lines[at:]...)...)
	return "POST /first HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" + smuggled
}

// say sends bytes and reads until the target ends the connection, which ends its sending side first.
func (g *target) say(t *testing.T, request string) {
	t.Helper()
	c, err := g.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, request)
	buf := make([]byte, 4<<10)
	if n, err := c.Read(buf); n > 0 && err == nil { // the answer to the first; a second one would follow at once
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
}
