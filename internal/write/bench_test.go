package write

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/configtest"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/learn"
	"optimist/internal/outbound"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

const (
	benchRead    = `{"name":"a small document","stock":10,"tags":["a","b"]}`
	benchSent    = `{"name":"a small document","stock":11,"tags":["a","b"]}`
	benchWritten = `{"_index":"shop","_id":"1","_version":7,"result":"updated","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":1000000000,"_primary_term":1}`
	benchIndex   = `{"shop":{"aliases":{},"settings":{"index":{"uuid":"u"}}}}`
)

var benchSeqNo = []byte(`"_seq_no":`)

// calm is an upstream without conflicts, which costs next to nothing itself.
type calm struct {
	index, written, read, missing upstream.Response
	seqNo                         int64 // of the last write
}

func newCalm() *calm {
	c := &calm{seqNo: 1e9}
	c.index.Status, c.index.Payload = 200, []byte(benchIndex)
	c.written.Status, c.written.Payload = 200, []byte(benchWritten)
	c.read.Status, c.read.Payload = 200, []byte(`{"_index":"shop","_id":"1","_version":6,"_seq_no":5,"_primary_term":1,"found":true,"_source":`+benchRead+`}`)
	c.missing.Status, c.missing.Payload = 404, []byte(`{"error":{"type":"document_missing_exception"},"status":404}`)
	c.written.Fields = []wire.Field{
		{Name: []byte("X-elastic-product"), Value: []byte("Elasticsearch")},
		{Name: []byte("content-type"), Value: []byte("application/json")},
		{Name: []byte("content-length"), Value: []byte("148")},
	}
	return c
}

func (c *calm) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
	switch {
	case r.Method == "PUT":
		c.seqNo++
		at := bytes.Index(c.written.Payload, benchSeqNo) + len(benchSeqNo)
		strconv.AppendInt(c.written.Payload[:at], c.seqNo, 10) // in place: all of these numbers have as many digits
		return &c.written, nil
	case r.Method == "POST":
		return &c.missing, nil
	case bytes.HasPrefix(r.Target, []byte("/shop/_doc/")):
		return &c.read, nil
	}
	return &c.index, nil
}

// benchRequest is a client's PUT as the door hands it in.
func benchRequest(b *testing.B, more ...wire.Field) *Request {
	_, set := configtest.Compile(b, "version: 1\nupstream: {urls: [http://127.0.0.1:1]}\n")
	op := &api.Op{}
	api.Parse([]byte("PUT"), []byte("/shop/_doc/1"), op)
	return &Request{
		Method: []byte("PUT"), Body: []byte(benchSent), Room: new(outbound.Room),
		Request: base.Request{
			Op: op, Rule: set.Match("shop", op.Kind), Session: identity.Named(session.Credentials{1}, []byte("thread")),
			Fields: append([]wire.Field{
				{Name: []byte("Host"), Value: []byte("localhost:9200")},
				{Name: []byte("User-Agent"), Value: []byte("bench/1.0 (linux-amd64)")},
				{Name: []byte("Accept"), Value: []byte("application/json")},
				{Name: []byte("Content-Type"), Value: []byte("application/json")},
				{Name: []byte("Content-Length"), Value: []byte("55")},
			}, more...),
		},
	}
}

// BenchmarkGuardedWrite is what a guarded write costs between the door and the upstream, by where its base comes from.
func BenchmarkGuardedWrite(b *testing.B) {
	for _, bench := range []struct {
		name string
		read bool // the session reads before each write
		more []wire.Field
		base outcome.BaseKind
	}{
		{"IfMatch", false, []wire.Field{{Name: []byte("If-Match"), Value: []byte(`"5-1"`)}}, outcome.BaseIfMatch},
		{"Session", true, nil, outcome.BaseRead},
		{"View", false, nil, outcome.BaseView},
	} {
		b.Run(bench.name, func(b *testing.B) {
			up, sessions := newCalm(), session.New(session.Options{})
			s := New(Options{Upstream: up, Engine: &es.Client{Upstream: up}, Sessions: sessions, Events: Events{Collision: learn.New(learn.Options{}).Observe}})
			r := benchRequest(b, bench.more...)
			rev, _ := revisionIn(`{"_version":6,"_seq_no":5,"_primary_term":1,"_source":` + benchRead + `}`)
			sessions.Read(r.Session, docRef("1"), rev, sessions.Epoch())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if bench.read {
					sessions.Read(r.Session, docRef("1"), rev, sessions.Epoch())
				}
				a, err := s.Do(b.Context(), r)
				if err != nil {
					b.Fatal(err)
				}
				if last := a.Fields[len(a.Fields)-1]; i == 1 && string(last.Value) != "guarded;attempts=1;base="+bench.base.String() {
					b.Fatalf("%s: %s", last.Name, last.Value)
				}
				a.Release()
			}
		})
	}
}

// BenchmarkPatch is what a PATCH costs between the door and the upstream, whose answers cost next to nothing.
func BenchmarkPatch(b *testing.B) {
	for _, bench := range []struct{ name, media, body string }{
		{"Steps", patch.MediaSteps, `[{"op":"increment","path":"/stock","value":1}]`},
		{"Merge", patch.MediaMerge, `{"stock":11}`},
		{"Operations", patch.MediaOperations, `[{"op":"replace","path":"/stock","value":11}]`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			up := newCalm()
			s := New(Options{Upstream: up, Engine: &es.Client{Upstream: up}, Sessions: session.New(session.Options{})})
			r := benchRequest(b)
			r.Fields[3].Value = []byte(bench.media)
			r.Op.Kind, r.Method, r.Body, r.Session = api.Patch, []byte("PATCH"), []byte(bench.body), session.Session{}
			b.ReportAllocs()
			for b.Loop() {
				a, err := s.Do(b.Context(), r)
				if err != nil || a.Status != 200 {
					b.Fatal(a, err)
				}
				a.Release()
			}
		})
	}
}
