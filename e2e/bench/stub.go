package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

// stubBody is an engine's answer to a small write.
const stubBody = `{"_index":"bench","_id":"1","_version":7,"result":"updated",` +
	`"_shards":{"total":2,"successful":1,"failed":0},"_seq_no":6,"_primary_term":1}`

const stubAnswer = "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\ncontent-length: "

// serveStub answers every request with one small JSON document.
func serveStub(ctx context.Context, args []string, out io.Writer) error {
	answer := stubMessage(stubBody)
	return serveAnswers(ctx, "serve-stub", args, out, func([]byte) []byte { return answer })
}

// serveAnswers gives each request the answer to it. It reads heads and bodies only as far as it must to find their ends, so that most of
// the machine is left to the proxy.
func serveAnswers(ctx context.Context, name string, args []string, out io.Writer, answer func(request []byte) []byte) error {
	if err := flag.NewFlagSet(name, flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go answerAll(c, answer)
	}
}

// answerAll answers the requests of one connection.
func answerAll(c net.Conn, answer func(request []byte) []byte) {
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
			if _, err := c.Write(answer(buf[:size])); err != nil {
				return
			}
			have = copy(buf, buf[size:have])
		}
	}
}

func stubMessage(body string) []byte {
	return []byte(stubAnswer + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// messageSize is the size of the message with a content-length that starts in b, or -1 while its head isn't whole.
func messageSize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return -1
	}
	for _, line := range bytes.Split(b[:end], []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(name) == len("content-length") && bytes.EqualFold(name, []byte("content-length")) {
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil {
				return -1
			}
			return end + 4 + n
		}
	}
	return end + 4
}

// listen opens a loopback port, prints its address as the first line of out, and closes it when ctx ends.
func listen(ctx context.Context, out io.Writer) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, ln.Addr().String())
	if f, ok := out.(*os.File); ok {
		_ = f.Sync()
	}
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	return ln, nil
}
