// Package attacks makes requests that are meant to cost a proxy more than their sender: each of any size, and of a form whose reading a
// careless program repeats for each part of it.
//
// It is for tests only.
package attacks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Attack is one form. Request makes a request of about size bytes, as it is sent on the wire.
type Attack struct {
	Name    string
	Request func(size int) []byte
	// Bounded says why it may cost more than in proportion to its size, up to a bound that is measured all the same. Mostly it is empty.
	Bounded string
}

// Config is a configuration under which as many of the parsers as can be are at work.
const Config = `
locks: {compat: {index: fs, type: lock}}
rules:
  - name: all
    match: {index: ["*"]}
    base: {stamp: _stamp, from: [if_match, stamp, session], unknown: fetch}
    merge: {paths: {/l: union, /n: sum, "/o/*/x": max}}
    transform:
      - {op: default, path: /status, value: new, when: 'incoming.a != "x"'}
      - {op: remove_empty}
      - {op: now, path: /at}
`

func request(method, target, media, body string, fields ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", method, target, len(body))
	if media != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", media)
	}
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return []byte(b.String() + "\r\n" + body)
}

const (
	jsonType = "application/json"
	bulkType = "application/x-ndjson"
)

// fill repeats part, whose %d is a number, up to size bytes; between is what stands between two.
func fill(size int, part, between string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(strings.ReplaceAll(part, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

// nested is open as often as fits, and closed as often; depth bounds it, 0 doesn't. What is left of size follows as members.
func nested(size int, open, inner, end string, depth int) string {
	n := size / (len(open) + len(end))
	if depth > 0 {
		n = min(n, depth)
	}
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// documents are bodies that are one JSON object.
func documents() map[string]func(size int) string {
	wide := func(size int) string { return "{" + fill(size, `"k%d":%d`, ",") + "}" }
	return map[string]func(size int) string{
		"many members":         wide,
		"one key many times":   func(size int) string { return "{" + fill(size, `"a":1`, ",") + "}" },
		"keys with escapes":    func(size int) string { return "{" + fill(size, `"\u0061%d\\":1`, ",") + "}" },
		"a long list":          func(size int) string { return `{"l":[` + fill(size, "%d", ",") + "]}" },
		"a list of objects":    func(size int) string { return `{"l":[` + fill(size, `{"a":[],"b":null}`, ",") + "]}" },
		"empty containers":     func(size int) string { return `{"o":{` + fill(size, `"e%d":{}`, ",") + "}}" },
		"a long string":        func(size int) string { return `{"s":"` + strings.Repeat("x", size) + `"}` },
		"a string of escapes":  func(size int) string { return `{"s":"` + strings.Repeat(`\\`, size/2) + `"}` },
		"quotes in a string":   func(size int) string { return `{"s":"` + strings.Repeat(`\"`, size/2) + `"}` },
		"half characters":      func(size int) string { return `{"s":"` + strings.Repeat(`\ud800`, size/6) + `"}` },
		"a long number":        func(size int) string { return `{"n":1` + strings.Repeat("7", size) + `}` },
		"a long fraction":      func(size int) string { return `{"n":0.` + strings.Repeat("3", size) + `}` },
		"a large exponent":     func(size int) string { return `{"n":1e` + strings.Repeat("9", size) + `}` },
		"objects in objects":   func(size int) string { return `{"x":` + nested(size, `{"a":`, "1", "}", 0) + "}" },
		"deep, then wide":      func(size int) string { return nested(size, `{"a":`, wide(size), "}", 90) },
		"lists in lists":       func(size int) string { return `{"x":` + nested(size, "[", "1", "]", 0) + "}" },
		"deep, 990 levels":     func(size int) string { return nested(size, `{"a":1,"b":[],"c":`, "1", "}", 990) },
		"objects in lists":     func(size int) string { return `{"l":[` + fill(size, `{"l":[{"l":[1]}]}`, ",") + "]}" },
		"white space":          func(size int) string { return `{"a":` + strings.Repeat(" \n\t", size/3) + `1}` },
		"brackets in a string": func(size int) string { return `{"s":"` + strings.Repeat("[{", size/2) + `"}` },
		"not ended":            func(size int) string { return `{"l":[` + fill(size, `"x`, ",") },
		"only brackets":        func(size int) string { return strings.Repeat("[", size) },
		"only braces":          func(size int) string { return strings.Repeat(`{"a":`, size/5) },
	}
}

// All are the attacks, in the order of their names. None needs credentials.
func All() []Attack {
	var list []Attack
	add := func(name string, make func(size int) []byte) { list = append(list, Attack{Name: name, Request: make}) }
	for name, body := range documents() {
		add("PUT: "+name, func(n int) []byte { return request("PUT", "/i/_doc/1", jsonType, body(n)) })
		add("_update: "+name, func(n int) []byte { return request("POST", "/i/_update/1", jsonType, `{"doc":`+body(n)+`}`) })
		add("upsert: "+name, func(n int) []byte {
			return request("POST", "/i/_update/1", jsonType, `{"doc":{"a":1},"upsert":`+body(n)+`}`)
		})
		add("merge patch: "+name, func(n int) []byte { return request("PATCH", "/i/_doc/1", "application/merge-patch+json", body(n)) })
		add("_mget: "+name, func(n int) []byte { return request("POST", "/i/_mget", jsonType, body(n)) })
		add("_search: "+name, func(n int) []byte { return request("POST", "/i/_search", jsonType, body(n)) })
		add("lock: "+name, func(n int) []byte { return request("PUT", "/_lock/global/a", jsonType, body(n)) })
		add("compat: "+name, func(n int) []byte { return request("POST", "/fs/lock/1/_update", jsonType, body(n)) })
	}
	list = append(list, patches()...)
	list = append(list, questions()...)
	list = append(list, heads()...)
	list = append(list, lines()...)
	slices.SortFunc(list, func(a, b Attack) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func patches() []Attack {
	patch := func(part string) func(n int) []byte {
		return func(n int) []byte {
			return request("PATCH", "/i/_doc/1", "application/json-patch+json", "["+fill(n, part, ",")+"]")
		}
	}
	steps := func(part string) func(n int) []byte {
		return func(n int) []byte {
			return request("PATCH", "/i/_doc/1", "application/vnd.optimist-patch+json", "["+fill(n, part, ",")+"]")
		}
	}
	return []Attack{
		{Name: "patch: insertions at the front", Request: patch(`{"op":"add","path":"/l/0","value":%d}`)},
		{Name: "patch: at the end", Request: patch(`{"op":"add","path":"/l/-","value":%d}`)},
		{Name: "patch: removals", Request: patch(`{"op":"remove","path":"/l/0"}`)},
		{Name: "patch: tests", Request: patch(`{"op":"test","path":"/o","value":{"a":%d}}`)},
		{Name: "patch: copies", Request: patch(`{"op":"copy","from":"/l","path":"/c%d"}`)},
		{Name: "patch: moves", Request: patch(`{"op":"move","from":"/l/0","path":"/l/1"}`)},
		{Name: "patch: long paths", Request: patch(`{"op":"add","path":"` + strings.Repeat("/a", 90) + `","value":%d}`)},
		{Name: "patch: escapes in paths", Request: func(n int) []byte {
			return request("PATCH", "/i/_doc/1", "application/json-patch+json", `[{"op":"add","path":"/`+strings.Repeat("~01", n/3)+`","value":1}]`)
		}},
		{Name: "steps: increments", Request: steps(`{"op":"increment","path":"/n","value":1}`)},
		{Name: "steps: unions", Request: steps(`{"op":"union","path":"/l","value":%d}`),
			Bounded: "each step reads the list that the one before it made; the work of edits is bounded"},
		{Name: "steps: remove_empty", Request: steps(`{"op":"remove_empty"}`)},
	}
}

func questions() []Attack {
	get := func(target func(n int) string) func(n int) []byte {
		return func(n int) []byte { return request("GET", target(n), "", "") }
	}
	stars := func(n int) string { return strings.Repeat("*a", n/2) }
	return []Attack{
		{Name: "query: many parameters", Request: get(func(n int) string { return "/i/_doc/1?" + fill(n, "p%d=1", "&") })},
		{Name: "query: empty parameters", Request: get(func(n int) string { return "/i/_doc/1?" + strings.Repeat("&", n) })},
		{Name: "query: encoded", Request: get(func(n int) string { return "/i/_doc/1?routing=" + strings.Repeat("%41", n/3) })},
		{Name: "query: one parameter many times", Request: get(func(n int) string { return "/i/_doc/1?" + fill(n, "_source=a%d", "&") })},
		{Name: "path: encoded", Request: get(func(n int) string { return "/i/_doc/" + strings.Repeat("%2F", n/3) })},
		{Name: "path: segments", Request: get(func(n int) string { return strings.Repeat("/a", n/2) })},
		{Name: "path: slashes", Request: get(func(n int) string { return "/i/_doc" + strings.Repeat("/", n) })},
		{Name: "path: indices", Request: get(func(n int) string { return "/" + fill(n, "i%d", ",") + "/_search" })},
		{Name: "path: patterns of indices", Request: get(func(n int) string { return "/" + fill(n, "i*%d*", ",") + "/_search" })},
		{Name: "path: indices that are deleted", Request: func(n int) []byte { return request("DELETE", "/"+fill(n, "i%d*", ","), "", "") }},
		{Name: "path: a long index", Request: get(func(n int) string { return "/" + strings.Repeat("i", n) + "/_doc/1" })},
		{Name: "path: a date expression", Request: get(func(n int) string {
			return "/" + strings.Repeat("%3Ci-%7Bnow%7D%3E", n/17) + "/_doc/1"
		})},
		{Name: "filter_path: many", Request: get(func(n int) string { return "/i/_doc/1?filter_path=" + fill(n, "a.b%d", ",") })},
		{Name: "filter_path: stars", Request: get(func(n int) string { return "/i/_doc/1?filter_path=" + stars(n) })},
		{Name: "filter_path: two stars", Request: get(func(n int) string {
			return "/i/_doc/1?filter_path=" + strings.Repeat("**.a.", n/5) + "a"
		})},
		{Name: "_source: stars", Request: get(func(n int) string { return "/i/_doc/1?_source=" + stars(n) })},
		{Name: "_source: many", Request: get(func(n int) string { return "/i/_doc/1?_source_excludes=" + fill(n, "a%d*", ",") })},
		{Name: "PATCH filter_path: stars", Request: func(n int) []byte {
			return request("PATCH", "/i/_doc/1?filter_path="+strings.Repeat("**.*a.", n/6)+"a", "application/merge-patch+json", `{"a":2}`)
		}},
		{Name: "lock: a deep tree", Request: get(func(n int) string { return "/i/_lock/tree" + strings.Repeat("/a", n/2) })},
		{Name: "lock: parameters", Request: get(func(n int) string { return "/_lock/global/a?" + fill(n, "owner=o%d", "&") })},
		{Name: "locks: prefix", Request: get(func(n int) string { return "/_lock?prefix=" + strings.Repeat("%2Fa", n/4) })},
	}
}

func heads() []Attack {
	with := func(field func(n int) []string) func(n int) []byte {
		return func(n int) []byte { return request("PUT", "/i/_doc/1", jsonType, `{"a":1}`, field(n)...) }
	}
	one := func(name, part, between string) func(n int) []byte {
		return with(func(n int) []string { return []string{name + ": " + fill(n, part, between)} })
	}
	return []Attack{
		{Name: "field: many", Request: with(func(n int) []string {
			return strings.Split(fill(n, "x-%d: 1234567890123456789012345678901234567890", "\n"), "\n")
		})},
		{Name: "field: many cookies", Request: with(func(n int) []string {
			return strings.Split(fill(n, "cookie: a%d=123456789012345678901234567890", "\n"), "\n")
		})},
		{
			Name: "field: many of attributes", Bounded: "they are sorted by name, and a request has 512 fields at most",
			Request: with(func(n int) []string {
				return strings.Split(fill(n, "x-proxy-ext-%d: 12345678901234567890", "\n"), "\n")
			}),
		},
		{Name: "field: Connection names", Request: one("Connection", "x%d", ", ")},
		{Name: "field: Accept", Request: one("Accept", "a/b%d;q=0.5", ", ")},
		{Name: "field: If-Match", Request: one("If-Match", `"%d-1"`, ", ")},
		{Name: "field: If-None-Match", Request: one("If-None-Match", `"%d-1"`, ", ")},
		{Name: "field: X-Forwarded-For", Request: one("X-Forwarded-For", "10.0.0.1", ", ")},
		{Name: "field: traceparent", Request: one("traceparent", "0", "-")},
		{Name: "field: Authorization", Request: one("Authorization", "Basic ", "")},
		{Name: "field: Content-Type", Request: with(func(n int) []string { return []string{"X-Type: a/b" + strings.Repeat(";a=b", n/4)} })},
		{Name: "field: Forwarded", Request: one("Forwarded", "for=10.0.0.%d", ", ")},
		{Name: "field: Optimist-Lock-Token", Request: one("Optimist-Lock-Token", "10000000%d", ",")},
		{Name: "field: Optimist-Session", Request: one("Optimist-Session", "x", "")},
	}
}

func lines() []Attack {
	bulk := func(line string) func(n int) []byte {
		return func(n int) []byte { return request("POST", "/_bulk", bulkType, fill(n, line, "")) }
	}
	chunks := func(n int) []byte {
		return []byte("PUT /i/_doc/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"1\r\n{\r\n" + strings.Repeat("1\r\n \r\n", n/6) + "1\r\n}\r\n0\r\n\r\n")
	}
	return []Attack{
		{Name: "_bulk: writes", Request: bulk("{\"index\":{\"_index\":\"i\",\"_id\":\"%d\"}}\n{\"a\":1}\n")},
		{Name: "_bulk: deletes", Request: bulk("{\"delete\":{\"_index\":\"i\",\"_id\":\"%d\"}}\n")},
		{Name: "_bulk: of the compat index", Request: bulk("{\"create\":{\"_index\":\"fs\",\"_id\":\"%d\"}}\n{}\n")},
		{Name: "_bulk: tokens of locks", Request: func(n int) []byte {
			return request("POST", "/_bulk", bulkType, fill(n, "{\"delete\":{\"_index\":\"i\",\"_id\":\"%d\",\"lock_token\":1%d}}\n", ""),
				"Optimist-Lock-Token: "+fill(n/2, "10000000%d", ","))
		}},
		{Name: "_bulk: empty lines", Request: bulk("\n")},
		{Name: "_bulk: no JSON", Request: bulk("{\"index\n")},
		{Name: "_msearch", Request: func(n int) []byte {
			return request("POST", "/_msearch", bulkType, fill(n, "{\"index\":\"i\"}\n{\"size\":%d}\n", ""))
		}},
		{Name: "_aliases", Request: func(n int) []byte {
			return request("POST", "/_aliases", jsonType, `{"actions":[`+fill(n, `{"add":{"index":"i%d","alias":"a"}}`, ",")+"]}")
		}},
		{Name: "_mget: ids", Request: func(n int) []byte { return request("POST", "/i/_mget", jsonType, `{"ids":[`+fill(n, `"%d"`, ",")+"]}") }},
		{Name: "_mget: docs", Request: func(n int) []byte {
			return request("POST", "/_mget", jsonType, `{"docs":[`+fill(n, `{"_index":"i","_id":"%d","_source":["a*"]}`, ",")+"]}")
		}},
		{Name: "locks: ids", Request: func(n int) []byte {
			return request("PUT", "/i/_lock/docs?renew", jsonType, `{"owner":"o","locks":[`+fill(n, `{"id":"%d","lock":"x"}`, ",")+"]}")
		}},
		{Name: "locks: tokens", Request: func(n int) []byte {
			return request("POST", "/_lock/_release", jsonType, `{"owner":"o","tokens":[`+fill(n, "%d1", ",")+"]}")
		}},
		{Name: "chunks of one byte", Request: chunks},
	}
}
