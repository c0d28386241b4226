package app

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// bulkEngine is an engine whose documents are never in conflict. It costs little: it carries out nothing, and answers each bulk with as many
// items.
func bulkEngine(b testing.TB, items int) string {
	docs := []byte(`{"docs":[`)
	for i := range items {
		docs = fmt.Appendf(docs, `{"_index":"shop","_id":"%d","_version":1,"_seq_no":1,"_primary_term":1,"found":true,"_source":{"name":"a small document"}},`, i)
	}
	docs = append(bytes.TrimSuffix(docs, []byte(",")), "]}"...)
	const index = `{"shop":{"aliases":{},"settings":{"index":{"uuid":"0123456789abcdefghijkl","number_of_shards":"1"}}}}`
	const missing = `{"error":{"type":"document_missing_exception","reason":"[1]: document missing"},"status":404}`
	var number atomic.Int64
	answer := func(r *http.Request) (status int, body []byte) {
		asked, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/_bulk"):
			return 200, bulkAnswer(asked, 100_000_000+number.Add(1))
		case strings.HasSuffix(r.URL.Path, "/_mget"):
			return 200, docs
		case r.Method == http.MethodPost:
			return 404, []byte(missing)
		}
		return 200, []byte(index)
	}
	return serving(b, func(c net.Conn) {
		in := bufio.NewReaderSize(c, 256<<10)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			status, body := answer(r)
			head := fmt.Appendf(nil, "HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n", status, len(body))
			if _, err := c.Write(append(head, body...)); err != nil {
				return
			}
		}
	})
}

// bulkAnswer is the answer to a bulk whose items have two lines each. They have their ids at the same place of the first.
func bulkAnswer(asked []byte, seq int64) []byte {
	numbers := fmt.Appendf(nil, `","_version":%d,"result":"updated","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":%[1]d,"_primary_term":1,"status":200}}`, seq)
	out := append(make([]byte, 0, len(asked)+len(asked)/4*len(numbers)/16), `{"took":3,"errors":false,"items":[`...)
	for len(asked) > 0 {
		var action []byte
		action, asked, _ = bytes.Cut(asked, []byte("\n"))
		_, asked, _ = bytes.Cut(asked, []byte("\n"))
		verb, members, _ := bytes.Cut(action[len(`{"`):], []byte(`"`))
		_, id, _ := bytes.Cut(members, []byte(`"_id":"`))
		id, _, _ = bytes.Cut(id, []byte(`"`))
		out = append(append(append(out, `{"`...), verb...), `":{"_index":"shop","_id":"`...)
		out = append(append(append(out, id...), numbers...), ',')
	}
	return append(bytes.TrimSuffix(out, []byte(",")), "]}"...)
}

// bulkItems is how many items the bulks of these measurements have.
const bulkItems = 1000

// bulkOf returns what sends a bulk through the door, over sockets, and returns its outcome: passed on, of an index without a rule, looked at,
// and guarded, whole documents and parts of them. Before a guarded one, all documents are read.
func bulkOf(b testing.TB, way string) (bulk func() string, guarded bool) {
	var documents, parts bytes.Buffer
	var names []string
	for i := range bulkItems {
		names = append(names, strconv.Itoa(i))
		fmt.Fprintf(&documents, "{\"index\":{\"_id\":\"%d\"}}\n{\"name\":\"a small document\",\"stock\":#########,\"tags\":[\"a\",\"b\"]}\n", i)
		fmt.Fprintf(&parts, "{\"update\":{\"_id\":\"%d\"}}\n{\"doc\":{\"stock\":#########}}\n", i)
	}
	c := behind(b, bulkEngine(b, bulkItems), way != "Passed")
	session, index, text := "", "shop", &documents
	switch way {
	case "Free":
		index = "logs-app"
	case "Parts":
		guarded, text = true, &parts
	case "Guarded":
		guarded = true
	}
	if guarded {
		session = "Optimist-Session: thread\r\n"
	}
	head := fmt.Appendf(nil, "POST /"+index+"/_bulk HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YTpi\r\n%sContent-Type: application/x-ndjson\r\n"+
		"Content-Length: %d\r\n\r\n", session, text.Len())
	in := bufio.NewReaderSize(c, 256<<10)
	send := func(request []byte) string {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if _, err = io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res.Status, err)
		}
		return res.Header.Get("Optimist-Outcome")
	}
	if guarded {
		ids := `{"ids":["` + strings.Join(names, `","`) + `"]}`
		send(fmt.Appendf(nil, "POST /shop/_mget HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YTpi\r\n%sContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", session, len(ids), ids))
	}
	n := 0
	return func() string {
		n++
		body := bytes.ReplaceAll(text.Bytes(), []byte("#########"), []byte(strconv.Itoa(100_000_000+n)))
		return send(append(head[:len(head):len(head)], body...))
	}, guarded
}

const allGuarded = "guarded;items=1000;guarded=1000"

// BenchmarkBulk is a bulk of 1,000 items. The time includes the client's and the engine's.
func BenchmarkBulk(b *testing.B) {
	for _, way := range []string{"Passed", "Free", "Looked", "Guarded", "Parts"} {
		b.Run(way, func(b *testing.B) {
			bulk, guarded := bulkOf(b, way)
			b.ReportAllocs()
			before := processorTime()
			for b.Loop() {
				if got := bulk(); guarded && got != allGuarded {
					b.Fatal(got)
				}
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N*bulkItems), "cpu-ns/item")
		})
	}
}

// What a bulk needs for all of its items, it takes once. Of its own, a guarded item has what the session keeps of it, and little else.
func TestAGuardedItemTakesFewPiecesOfMemory(t *testing.T) {
	const most = 7
	bulk, _ := bulkOf(t, "Guarded")
	bulk()
	if took := testing.AllocsPerRun(3, func() {
		if got := bulk(); got != allGuarded {
			t.Fatal(got)
		}
	}) / bulkItems; took > most {
		t.Errorf("%.1f pieces an item", took)
	}
}

// processorTime is what the process has used so far. On a busy machine it says more than the time that has passed.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
