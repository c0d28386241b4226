package attacks

import (
	"bytes"
	"compress/gzip"
	"strings"
)

// zipped is text as gzip data, in pieces that are members of their own.
func zipped(text string, pieces int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for ; pieces > 0; pieces-- {
		_, _ = z.Write([]byte(text[:len(text)/pieces]))
		text = text[len(text)/pieces:]
		_ = z.Close()
		z.Reset(&b)
	}
	return b.Bytes()
}

// coded is a request whose body is gzip data.
func coded(method, target, media string, body []byte) []byte {
	return request(method, target, media, string(body), "Content-Encoding: gzip")
}

// codings have bodies that are short, or cheap to make, for what has to be done to read them.
func codings() []Attack {
	const small = 21 // bytes of a member of one byte
	put := func(body func(n int) []byte) func(n int) []byte {
		return func(n int) []byte { return coded("PUT", "/i/_doc/1", jsonType, body(n)) }
	}
	chunks := func(before, chunk, after string) func(n int) []byte {
		return func(n int) []byte {
			return []byte("PUT /i/_doc/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
				before + strings.Repeat(chunk, n/len(chunk)) + after)
		}
	}
	bomb := func(name, method, target, media, part string) Attack {
		return Attack{Name: "gzip: " + name, Bounded: "gzip data may become 200 times as long, and then as long as a guarded body may be",
			Request: func(n int) []byte { return coded(method, target, media, zipped(Fill(40*n, part, ""), 1)) }}
	}
	return []Attack{
		{Name: "gzip: members of a byte", Request: put(func(n int) []byte {
			return zipped("{"+strings.Repeat(" ", n/small)+"}", n/small)
		})},
		{Name: "gzip: empty members", Request: put(func(n int) []byte { return zipped("", n/small) })},
		{Name: "gzip: empty blocks", Request: put(func(n int) []byte {
			head := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
			return append(head, bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, n/5)...)
		})},
		{Name: "gzip: long names", Request: put(func(n int) []byte {
			member := append([]byte{0x1f, 0x8b, 8, 0x18, 0, 0, 0, 0, 0, 0xff}, strings.Repeat("x", 500)+"\x00"+strings.Repeat("y", 500)+"\x00"...)
			member = append(member, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
			return bytes.Repeat(member, 1+n/len(member))
		})},
		{Name: "gzip: what is no gzip", Request: put(func(n int) []byte { return bytes.Repeat([]byte{0x1f, 0x8b, 8}, n/3) })},
		bomb("white space", "PUT", "/i/_doc/1", jsonType, " \n"),
		bomb("a patch", "PATCH", "/i/_doc/1", stepsType, "[{}"),
		bomb("an _mget", "POST", "/i/_mget", jsonType, `["",`),
		bomb("a _bulk", "POST", "/i/_bulk", bulkType, `{"delete":{"_id":"1"}}`+"\n"),
		bomb("empty lines of a _bulk", "POST", "/i/_bulk", bulkType, "\n"),
		{Name: "gzip: many codings", Request: func(n int) []byte {
			return request("PUT", "/i/_doc/1", jsonType, `{"a":1}`, "Content-Encoding: "+Fill(n, "gzip", ", "))
		}},
		{Name: "chunks of one byte", Request: chunks("1\r\n{\r\n", "1\r\n \r\n", "1\r\n}\r\n0\r\n\r\n")},
		{Name: "chunks with extensions", Request: chunks("1\r\n{\r\n", "1;a=b;c\r\n \r\n", "1\r\n}\r\n0\r\n\r\n")},
		{Name: "chunks: a long extension", Request: chunks("2;", "a=b;", "\r\n{}\r\n0\r\n\r\n")},
		{Name: "chunks: zeros before the size", Request: chunks("", "0", "2\r\n{}\r\n0\r\n\r\n")},
		{Name: "chunks: trailers", Request: chunks("2\r\n{}\r\n0\r\n", "x-a: 1\r\n", "\r\n")},
	}
}
