// Package attacks makes requests that are meant to cost a proxy more than their sender. Each has any size, and a form that a
// careless program reads once more for each of its parts.
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

// Fill repeats part, whose %d is a number, up to size bytes; between is what stands between two.
func Fill(size int, part, between string) string {
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
	wide := func(size int) string { return "{" + Fill(size, `"k%d":%d`, ",") + "}" }
	return map[string]func(size int) string{
		"many members":          wide,
		"one key many times":    func(size int) string { return "{" + Fill(size, `"a":1`, ",") + "}" },
		"keys with escapes":     func(size int) string { return "{" + Fill(size, `"\u0061%d\\":1`, ",") + "}" },
		"a long list":           func(size int) string { return `{"l":[` + Fill(size, "%d", ",") + "]}" },
		"a list of objects":     func(size int) string { return `{"l":[` + Fill(size, `{"a":[],"b":null}`, ",") + "]}" },
		"empty containers":      func(size int) string { return `{"o":{` + Fill(size, `"e%d":{}`, ",") + "}}" },
		"a long string":         func(size int) string { return `{"s":"` + strings.Repeat("x", size) + `"}` },
		"a string of escapes":   func(size int) string { return `{"s":"` + strings.Repeat(`\\`, size/2) + `"}` },
		"quotes in a string":    func(size int) string { return `{"s":"` + strings.Repeat(`\"`, size/2) + `"}` },
		"half characters":       func(size int) string { return `{"s":"` + strings.Repeat(`\ud800`, size/6) + `"}` },
		"a long number":         func(size int) string { return `{"n":1` + strings.Repeat("7", size) + `}` },
		"a long fraction":       func(size int) string { return `{"n":0.` + strings.Repeat("3", size) + `}` },
		"a large exponent":      func(size int) string { return `{"n":1e` + strings.Repeat("9", size) + `}` },
		"objects in objects":    func(size int) string { return `{"x":` + nested(size, `{"a":`, "1", "}", 0) + "}" },
		"deep, then wide":       func(size int) string { return nested(size, `{"a":`, wide(size), "}", 90) },
		"lists in lists":        func(size int) string { return `{"x":` + nested(size, "[", "1", "]", 0) + "}" },
		"deep, 990 levels":      func(size int) string { return nested(size, `{"a":1,"b":[],"c":`, "1", "}", 990) },
		"objects in lists":      func(size int) string { return `{"l":[` + Fill(size, `{"l":[{"l":[1]}]}`, ",") + "]}" },
		"white space":           func(size int) string { return `{"a":` + strings.Repeat(" \n\t", size/3) + `1}` },
		"brackets in a string":  func(size int) string { return `{"s":"` + strings.Repeat("[{", size/2) + `"}` },
		"not ended":             func(size int) string { return `{"l":[` + Fill(size, `"x`, ",") },
		"long numbers":          func(size int) string { return `{"l":[` + Fill(size, strings.Repeat("7", 900)+"%d", ",") + "]}" },
		"large exponents":       func(size int) string { return `{"l":[` + Fill(size, "1e-%d999999", ",") + "]}" },
		"empty strings":         func(size int) string { return `{"l":[` + Fill(size, `""`, ",") + "]}" },
		"names of paths":        func(size int) string { return "{" + Fill(size, `"o.x.%d":{"o.x":1}`, ",") + "}" },
		"a name of many dots":   func(size int) string { return `{"` + strings.Repeat("a.", size/2) + `":1}` },
		"characters as escapes": func(size int) string { return `{"s":"` + strings.Repeat(`\u0001`, size/6) + `"}` },
		"bytes of no character": func(size int) string { return `{"s":"` + strings.Repeat("\xff", size) + `"}` },
		"stamps":                func(size int) string { return "{" + Fill(size, `"_stamp":"%d-1"`, ",") + "}" },
		"only brackets":         func(size int) string { return strings.Repeat("[", size) },
		"only braces":           func(size int) string { return strings.Repeat(`{"a":`, size/5) },
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
		add("_delete_by_query: "+name, func(n int) []byte { return request("POST", "/i/_delete_by_query", jsonType, body(n)) })
		add("lock: "+name, func(n int) []byte { return request("PUT", "/_lock/global/a", jsonType, body(n)) })
		add("compat: "+name, func(n int) []byte { return request("POST", "/fs/lock/1/_update", jsonType, body(n)) })
	}
	list = append(list, patches()...)
	list = append(list, transforms()...)
	list = append(list, questions()...)
	list = append(list, heads()...)
	list = append(list, lines()...)
	list = append(list, actions()...)
	list = append(list, products()...)
	list = append(list, codings()...)
	slices.SortFunc(list, func(a, b Attack) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func questions() []Attack {
	get := func(target func(n int) string) func(n int) []byte {
		return func(n int) []byte { return request("GET", target(n), "", "") }
	}
	stars := func(n int) string { return strings.Repeat("*a", n/2) }
	return []Attack{
		{Name: "query: many parameters", Request: get(func(n int) string { return "/i/_doc/1?" + Fill(n, "p%d=1", "&") })},
		{Name: "query: empty parameters", Request: get(func(n int) string { return "/i/_doc/1?" + strings.Repeat("&", n) })},
		{Name: "query: encoded", Request: get(func(n int) string { return "/i/_doc/1?routing=" + strings.Repeat("%41", n/3) })},
		{Name: "query: one parameter many times", Request: get(func(n int) string { return "/i/_doc/1?" + Fill(n, "_source=a%d", "&") })},
		{Name: "path: encoded", Request: get(func(n int) string { return "/i/_doc/" + strings.Repeat("%2F", n/3) })},
		{Name: "path: segments", Request: get(func(n int) string { return strings.Repeat("/a", n/2) })},
		{Name: "path: slashes", Request: get(func(n int) string { return "/i/_doc" + strings.Repeat("/", n) })},
		{Name: "path: indices", Request: get(func(n int) string { return "/" + Fill(n, "i%d", ",") + "/_search" })},
		{Name: "path: patterns of indices", Request: get(func(n int) string { return "/" + Fill(n, "i*%d*", ",") + "/_search" })},
		{Name: "path: indices that are deleted", Request: func(n int) []byte { return request("DELETE", "/"+Fill(n, "i%d*", ","), "", "") }},
		{Name: "path: a long index", Request: get(func(n int) string { return "/" + strings.Repeat("i", n) + "/_doc/1" })},
		{Name: "path: a date expression", Request: get(func(n int) string {
			return "/" + strings.Repeat("%3Ci-%7Bnow%7D%3E", n/17) + "/_doc/1"
		})},
		{Name: "filter_path: many", Request: get(func(n int) string { return "/i/_doc/1?filter_path=" + Fill(n, "a.b%d", ",") })},
		{Name: "filter_path: stars", Request: get(func(n int) string { return "/i/_doc/1?filter_path=" + stars(n) })},
		{Name: "filter_path: two stars", Request: get(func(n int) string {
			return "/i/_doc/1?filter_path=" + strings.Repeat("**.a.", n/5) + "a"
		})},
		{Name: "_source: stars", Request: get(func(n int) string { return "/i/_doc/1?_source=" + stars(n) })},
		{Name: "_source: many", Request: get(func(n int) string { return "/i/_doc/1?_source_excludes=" + Fill(n, "a%d*", ",") })},
		{Name: "PATCH filter_path: stars", Request: func(n int) []byte {
			return request("PATCH", "/i/_doc/1?filter_path="+strings.Repeat("**.*a.", n/6)+"a", "application/merge-patch+json", `{"a":2}`)
		}},
		{Name: "lock: a deep tree", Request: get(func(n int) string { return "/i/_lock/tree" + strings.Repeat("/a", n/2) })},
		{Name: "lock: parameters", Request: get(func(n int) string { return "/_lock/global/a?" + Fill(n, "owner=o%d", "&") })},
		{Name: "query: long numbers", Request: get(func(n int) string { return "/i/_doc/1?version=" + strings.Repeat("9", n) })},
		{Name: "query: zeros", Request: func(n int) []byte {
			return request("PUT", "/i/_doc/1?if_primary_term=1&if_seq_no="+strings.Repeat("0", n), jsonType, `{"a":1}`)
		}},
		{Name: "query: a date", Request: get(func(n int) string { return "/_lock/global/a?owner=o&ttl=" + strings.Repeat("1h", n/2) })},
		{Name: "scroll: a long id", Request: get(func(n int) string { return "/_search/scroll/" + strings.Repeat("RkdM", n/4) })},
		{Name: "locks: prefix", Request: get(func(n int) string { return "/_lock?prefix=" + strings.Repeat("%2Fa", n/4) })},
	}
}

func heads() []Attack {
	with := func(field func(n int) []string) func(n int) []byte {
		return func(n int) []byte { return request("PUT", "/i/_doc/1", jsonType, `{"a":1}`, field(n)...) }
	}
	one := func(name, part, between string) func(n int) []byte {
		return with(func(n int) []string { return []string{name + ": " + Fill(n, part, between)} })
	}
	return []Attack{
		{Name: "field: many", Request: with(func(n int) []string {
			return strings.Split(Fill(n, "x-%d: 1234567890123456789012345678901234567890", "\n"), "\n")
		})},
		{Name: "field: many cookies", Request: with(func(n int) []string {
			return strings.Split(Fill(n, "cookie: a%d=123456789012345678901234567890", "\n"), "\n")
		})},
		{
			Name: "field: many of attributes", Bounded: "they are sorted by name, and a request has 512 fields at most",
			Request: with(func(n int) []string {
				return strings.Split(Fill(n, "x-proxy-ext-%d: 12345678901234567890", "\n"), "\n")
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
		{Name: "field: Idempotency-Key", Request: one("Idempotency-Key", "x", "")},
		{Name: "field: Optimist-Priority", Request: one("Optimist-Priority", "background", ", ")},
		{Name: "field: Accept-Encoding", Request: one("Accept-Encoding", "a%d;q=0.5", ", ")},
		{Name: "field: Cookie", Request: one("Cookie", "a%d=1", "; ")},
		{Name: "field: tracestate", Request: one("tracestate", "a%d=1", ",")},
		{Name: "field: X-Opaque-Id", Request: one("X-Opaque-Id", "%d", "-")},
		{Name: "field: the same many times", Request: with(func(n int) []string {
			return strings.Split(Fill(n, "if-match: \"%d-1\"", "\n"), "\n")
		})},
	}
}

func lines() []Attack {
	bulk := func(line string) func(n int) []byte {
		return func(n int) []byte { return request("POST", "/_bulk", bulkType, Fill(n, line, "")) }
	}
	return []Attack{
		{Name: "_bulk: writes", Request: bulk("{\"index\":{\"_index\":\"i\",\"_id\":\"%d\"}}\n{\"a\":1}\n")},
		{Name: "_bulk: deletes", Request: bulk("{\"delete\":{\"_index\":\"i\",\"_id\":\"%d\"}}\n")},
		{Name: "_bulk: of the compat index", Request: bulk("{\"create\":{\"_index\":\"fs\",\"_id\":\"%d\"}}\n{}\n")},
		{Name: "_bulk: tokens of locks", Request: func(n int) []byte {
			return request("POST", "/_bulk", bulkType, Fill(n, "{\"delete\":{\"_index\":\"i\",\"_id\":\"%d\",\"lock_token\":1%d}}\n", ""),
				"Optimist-Lock-Token: "+Fill(n/2, "10000000%d", ","))
		}},
		{Name: "_bulk: empty lines", Request: bulk("\n")},
		{Name: "_bulk: no JSON", Request: bulk("{\"index\n")},
		{Name: "_msearch", Request: func(n int) []byte {
			return request("POST", "/_msearch", bulkType, Fill(n, "{\"index\":\"i\"}\n{\"size\":%d}\n", ""))
		}},
		{Name: "_aliases", Request: func(n int) []byte {
			return request("POST", "/_aliases", jsonType, `{"actions":[`+Fill(n, `{"add":{"index":"i%d","alias":"a"}}`, ",")+"]}")
		}},
		{Name: "_mget: ids", Request: func(n int) []byte { return request("POST", "/i/_mget", jsonType, `{"ids":[`+Fill(n, `"%d"`, ",")+"]}") }},
		{Name: "_mget: docs", Request: func(n int) []byte {
			return request("POST", "/_mget", jsonType, `{"docs":[`+Fill(n, `{"_index":"i","_id":"%d","_source":["a*"]}`, ",")+"]}")
		}},
		{Name: "locks: ids", Request: func(n int) []byte {
			return request("PUT", "/i/_lock/docs?renew", jsonType, `{"owner":"o","locks":[`+Fill(n, `{"id":"%d","lock":"x"}`, ",")+"]}")
		}},
		{Name: "locks: tokens", Request: func(n int) []byte {
			return request("POST", "/_lock/_release", jsonType, `{"owner":"o","tokens":[`+Fill(n, "%d1", ",")+"]}")
		}},
	}
}

// actions are bulks of one item, of which the line that says what to do is long, or the small part of a document that stands for it.
func actions() []Attack {
	item := func(begin string, middle func(n int) string, end string) func(n int) []byte {
		return func(n int) []byte { return request("POST", "/_bulk", bulkType, begin+middle(n)+end) }
	}
	text := func(part string) func(n int) string { return func(n int) string { return Fill(n, part, "") } }
	list := func(part string) func(n int) string { return func(n int) string { return Fill(n, part, ",") } }
	deep := func(open, inner, end string) func(n int) string {
		return func(n int) string { return nested(n, open, inner, end, 0) }
	}
	const document, part = "}}\n{\"a\":1}\n", "}}\n{\"doc\":{}}\n"
	return []Attack{
		{Name: "action: a long index", Request: item(`{"index":{"_id":"1","_index":"`, text("x"), `"`+document)},
		{Name: "action: a long list of indices", Request: item(`{"index":{"_id":"1","_index":"`, list("i%d"), `"`+document)},
		{Name: "action: a long date", Request: item(`{"index":{"_id":"1","_index":"<i{now`, text("/d"), `}>"`+document)},
		{Name: "action: an index of escapes", Request: item(`{"index":{"_id":"1","_index":"`, text(`\u0069`), `"`+document)},
		{Name: "action: an index of half characters", Request: item(`{"index":{"_id":"1","_index":"`, text(`\ud800`), `"`+document)},
		{Name: "action: a long id", Request: item(`{"index":{"_index":"i","_id":"`, text("x"), `"`+document)},
		{Name: "action: a long routing", Request: item(`{"index":{"_index":"i","_id":"1","routing":"`, text("x"), `"`+document)},
		{Name: "action: a long version", Request: item(`{"index":{"_index":"i","_id":"1","version":1`, text("7"), document)},
		{Name: "action: a long token", Request: item(`{"index":{"_index":"i","_id":"1","lock_token":1`, text("7"), document)},
		{Name: "action: many members", Request: item(`{"index":{"_index":"i",`, list(`"k%d":%d`), document)},
		{Name: "action: one member many times", Request: item(`{"index":{"_index":"i",`, list(`"_id":"%d"`), document)},
		{Name: "action: names of escapes", Request: item(`{"index":{"_index":"i",`, list(`"\u005fid":"%d"`), document)},
		{Name: "action: many actions", Request: item(`{`, list(`"index":{"_id":"%d"}`), "}\n{\"a\":1}\n")},
		{Name: "action: deep lists", Request: item(`{"index":{"_index":"i","_id":`, deep("[", "", "]"), document)},
		{Name: "action: deep objects", Request: item(`{"index":{"_index":"i","_id":`, deep(`{"a":`, "1", "}"), document)},
		{Name: "action: a deep filter", Request: item(`{"update":{"_index":"i","_id":"1","_source":`, deep("[", `"a"`, "]"), part)},
		{Name: "action: a wide filter", Request: item(`{"update":{"_index":"i","_id":"1","_source":[`, list(`"a%d*"`), "]"+part)},
		{Name: "action: templates", Request: item(`{"index":{"_index":"i","_id":"1","dynamic_templates":{`, list(`"a%d":"x"`), "}"+document)},
		{Name: "action: nothing but brackets", Request: item(``, text("["), "\n")},
		{Name: "action: a deep update", Request: item("{\"update\":{\"_index\":\"i\",\"_id\":\"1\"}}\n", deep(`{"doc":`, "1", "}"), "\n")},
		{Name: "action: what follows an update", Request: item("{\"update\":{\"_index\":\"i\",\"_id\":\"1\"}}\n{\"doc\":{}}", text(" {}"), "\n")},
	}
}

// products have a long head, and a body of many parts: a program that reads the head, or copies it, for each of the parts makes the product
// of the two lengths.
func products() []Attack {
	const item, id = "{\"index\":{\"_id\":\"%d\"}}\n{}\n", `"%d"`
	bulk := func(target func(n int) string, fields ...func(n int) string) func(n int) []byte {
		return func(n int) []byte {
			var own []string
			for _, f := range fields {
				own = append(own, strings.Split(f(n/2), "\n")...)
			}
			return request("POST", target(n/2), bulkType, Fill(n/2, item, ""), own...)
		}
	}
	many := func(name, part, between string) func(n int) string {
		return func(n int) string { return name + Fill(n, part, between) }
	}
	to := func(target string) func(int) string { return func(int) string { return target } }
	mget := func(target func(n int) string) func(n int) []byte {
		return func(n int) []byte { return request("POST", target(n/2), jsonType, `{"ids":[`+Fill(n/2, id, ",")+"]}") }
	}
	long := func(before, after string) func(n int) string {
		return func(n int) string { return before + strings.Repeat("i", n) + after }
	}
	parameters := func(before string) func(n int) string { return many(before, "p%d=1", "&") }
	return []Attack{
		{Name: "_bulk: a long pipeline", Request: bulk(long("/i/_bulk?pipeline=", ""))},
		{Name: "_bulk: a long time-out", Request: bulk(long("/i/_bulk?timeout=", ""))},
		{Name: "_bulk: a long routing", Request: bulk(long("/i/_bulk?routing=", ""))},
		{Name: "_bulk: a long index in the path", Request: bulk(long("/", "/_bulk"))},
		{Name: "_bulk: a long type in the path", Request: bulk(long("/i/", "/_bulk"))},
		{Name: "_bulk: many parameters", Request: bulk(parameters("/i/_bulk?"))},
		{Name: "_bulk: one parameter many times", Request: bulk(many("/i/_bulk?", "_source=a%d", "&"))},
		{
			Name: "_bulk: many fields", Bounded: "a request has 512 fields at most",
			Request: bulk(to("/i/_bulk"), many("", "x-%d: 12345678901234567890", "\n")),
		},
		{Name: "_bulk: a long session", Request: bulk(to("/i/_bulk"), long("Optimist-Session: ", ""))},
		{Name: "_bulk: a long If-Match", Request: bulk(to("/i/_bulk"), many("If-Match: ", `"%d-1"`, ", "))},
		{Name: "_bulk: a long X-Forwarded-For", Request: bulk(to("/i/_bulk"), many("X-Forwarded-For: ", "10.0.0.1", ", "))},
		{Name: "_mget: a long index in the path", Request: mget(long("/", "/_mget"))},
		{Name: "_mget: a long routing", Request: mget(long("/i/_mget?routing=", ""))},
		{Name: "_mget: many parameters", Request: mget(parameters("/i/_mget?"))},
		{Name: "_mget: one parameter many times", Request: mget(many("/i/_mget?", "stored_fields=a%d", "&"))},
		{Name: "locks: ids of a long index", Request: func(n int) []byte {
			return request("PUT", "/"+strings.Repeat("i", n/2)+"/_lock/docs", jsonType, `{"owner":"o","ids":[`+Fill(n/2, id, ",")+"]}")
		}},
		{Name: "locks: ids, many parameters", Request: func(n int) []byte {
			return request("PUT", "/i/_lock/docs?"+Fill(n/2, "p%d=1", "&"), jsonType, `{"owner":"o","ids":[`+Fill(n/2, id, ",")+"]}")
		}},
		{Name: "PATCH filter_path: many", Request: func(n int) []byte {
			return request("PATCH", "/i/_doc/1?_source=true&filter_path="+Fill(n/2, "a.b%d", ","), "application/merge-patch+json",
				"{"+Fill(n/2, `"k%d":%d`, ",")+"}")
		}},
		{Name: "_bulk: filter_path, many", Request: bulk(many("/i/_bulk?filter_path=", "a.b%d", ","))},
	}
}
