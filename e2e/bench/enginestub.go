package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
)

// What the stub of an engine says: of an index, of any document read, and of any document written.
const (
	stubIndex = `{"bench":{"aliases":{},"settings":{"index":{"uuid":"0123456789abcdefghijkl","number_of_shards":"1"}}}}`
	stubRead  = `{"_index":"bench","_id":"1","_version":` + anyNumber + `,"_seq_no":` + anyNumber + `,"_primary_term":1,"found":true,` +
		`"_source":` + stubSource + `}`
	stubWritten = `{"_index":"bench","_id":"1","_version":` + anyNumber + `,"result":"updated",` +
		`"_shards":{"total":2,"successful":1,"failed":0},"_seq_no":` + anyNumber + `,"_primary_term":1}`
	// stubMissing answers an _update, by which optimist asks of a document that isn't there whether it sees all of one.
	stubMissing = `{"error":{"type":"document_missing_exception","reason":"[1]: document missing"},"status":404}`
	// stubSource is the document, and, with another stock, what the clients write back.
	stubSource = `{"name":"a small document","stock":10,"tags":["a","b"],"updated_at":"2024-05-01T10:00:00Z"}`
)

// anyNumber stands in an answer where the stub puts a number of so many digits. Each write of a document has a higher number than the one
// before it: an acknowledgement with the number of the guard would be that of an earlier write.
const anyNumber = "##########"

// about is an answer as it is given about another document.
func about(body, index string, client int) string {
	return strings.NewReplacer(`"bench"`, `"`+index+`"`, `"_id":"1"`, `"_id":"`+strconv.Itoa(client+1)+`"`).Replace(body)
}

// serveEngineStub answers as an engine whose documents all look alike and are never in conflict: reads with the document, writes
// with their acknowledgement, everything else with what the index is, but for an _update.
func serveEngineStub(ctx context.Context, args []string, out io.Writer) error {
	return serveAnswers(ctx, "serve-engine-stub", args, out, newEngineStub().answer)
}

// stubDocument is a document of the stub, and the answers about it.
type stubDocument struct {
	read, written []byte // with places for numbers
	writes        atomic.Int64
}

// numbered is an answer with the document's present number. Each caller gets a copy: several clients may ask at once.
func (d *stubDocument) numbered(answer []byte, writes int64) []byte {
	const first = 1_000_000_000 // has as many digits as anyNumber
	return bytes.ReplaceAll(answer, []byte(anyNumber), strconv.AppendInt(nil, first+writes, 10))
}

// mostClients is how many clients have a document of their own.
const mostClients = 1024

type engineStub struct {
	indices   map[string][]byte        // what is said of each
	documents map[string]*stubDocument // by path
	missing   []byte
}

func newEngineStub() *engineStub {
	s := &engineStub{indices: map[string][]byte{}, documents: map[string]*stubDocument{},
		missing: bytes.Replace(stubMessage(stubMissing), []byte("200 OK"), []byte("404 Not Found"), 1)}
	for _, index := range []string{"bench", "ruled", "locked"} {
		s.indices[index] = stubMessage(about(stubIndex, index, 0))
		for client := range mostClients {
			s.documents[document(index, client)] = &stubDocument{
				read: stubMessage(about(stubRead, index, client)), written: stubMessage(about(stubWritten, index, client))}
		}
	}
	return s
}

// nobodyHolds answers a look at locks: there are none, and the gates say so.
func nobodyHolds(request []byte) []byte {
	_, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	var want struct{ IDs []string }
	_ = json.Unmarshal(body, &want) // else there are none
	docs := []map[string]any{}
	for _, id := range want.IDs {
		if strings.HasPrefix(id, "gate:") {
			docs = append(docs, map[string]any{"_id": id, "found": true, "_seq_no": 1, "_primary_term": 1,
				"_source": map[string]string{"gate": "free"}})
			continue
		}
		docs = append(docs, map[string]any{"_id": id, "found": false})
	}
	text, _ := json.Marshal(map[string]any{"docs": docs}) // strings, numbers and lists of them
	return stubMessage(string(text))
}

func (s *engineStub) answer(request []byte) []byte {
	method, rest, _ := bytes.Cut(request, []byte(" "))
	path := rest[:max(0, bytes.IndexAny(rest, " ?"))]
	d, known := s.documents[string(path)]
	switch {
	case bytes.HasPrefix(path, []byte("/optimist-locks/_mget")):
		return nobodyHolds(request)
	case known && (bytes.Equal(method, []byte("PUT")) || bytes.Equal(method, []byte("PATCH"))):
		return d.numbered(d.written, d.writes.Add(1))
	case known && bytes.Equal(method, []byte("GET")):
		return d.numbered(d.read, d.writes.Load())
	case bytes.Equal(method, []byte("POST")):
		return s.missing
	}
	index, _, _ := bytes.Cut(bytes.TrimPrefix(path, []byte("/")), []byte("/"))
	if of, known := s.indices[string(index)]; known {
		return of
	}
	return s.indices["bench"]
}
