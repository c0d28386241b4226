package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"strconv"
)

// What the stub of an engine says: of its only index, of any document read, and of any document written.
const (
	stubIndex = `{"bench":{"aliases":{},"settings":{"index":{"uuid":"0123456789abcdefghijkl","number_of_shards":"1"}}}}`
	stubRead  = `{"_index":"bench","_id":"1","_version":7,"_seq_no":6,"_primary_term":1,"found":true,"_source":` + stubSource + `}`
	// stubSource is the document, and, with another stock, what the clients write back.
	stubSource = `{"name":"a small document","stock":10,"tags":["a","b"],"updated_at":"2024-05-01T10:00:00Z"}`
)

// serveEngineStub answers as an engine whose documents are all alike and are never in conflict: reads with the document, writes
// with their acknowledgement, everything else with what the index is.
func serveEngineStub(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("serve-engine-stub", flag.ContinueOnError)
	if err := fs.Parse(args); err != nil {
		return err
	}
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	s := engineStub{read: stubMessage(stubRead), written: stubMessage(stubBody), index: stubMessage(stubIndex)}
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

func stubMessage(body string) []byte {
	return []byte(stubAnswer + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

type engineStub struct{ read, written, index []byte }

func (s *engineStub) serve(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		for {
			size := messageSize(buf[:have])
			if size < 0 || size > have {
				break
			}
			if _, err := c.Write(s.answer(buf[:size])); err != nil {
				return
			}
			have = copy(buf, buf[size:have])
		}
	}
}

func (s *engineStub) answer(request []byte) []byte {
	switch {
	case bytes.HasPrefix(request, []byte("PUT ")):
		return s.written
	case bytes.HasPrefix(request, []byte("GET /bench/_doc/")):
		return s.read
	}
	return s.index
}
