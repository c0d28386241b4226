package bulk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/upstream"
	"optimist/internal/uri"
)

// readAll reads all items of a bulk.
func readAll(text string, d Defaults) (items []Item, err error) {
	r := NewReader([]byte(text), d)
	for {
		it, ok, err := r.Next()
		if err != nil || !ok {
			return items, err
		}
		items = append(items, it)
	}
}

// Each item becomes the request that would do the same for its document alone.
func TestItemsBecomeRequests(t *testing.T) {
	shop := Defaults{Index: "shop"}
	for _, c := range []struct {
		text, method, target string
		kind                 api.Kind
		d                    Defaults
	}{
		{`{"index":{"_id":"1"}}|{"a":1}|`, "PUT", "/shop/_doc/1", api.Index, shop},
		{`{"index":{"_index":"a b","_id":"x/y"}}|{}|`, "PUT", "/a%20b/_doc/x%2Fy", api.Index, shop},
		{`{"index":{"_id":7,"routing":"r s","pipeline":"p"}}|{}|`, "PUT", "/shop/_doc/7?pipeline=p&routing=r+s", api.Index, shop},
		{`{"index":{"_id":"1","if_seq_no":3,"if_primary_term":1}}|{}|`, "PUT", "/shop/_doc/1?if_seq_no=3&if_primary_term=1", api.Index, shop},
		{`{"index":{"_id":"1","version":3,"version_type":"external"}}|{}|`, "PUT", "/shop/_doc/1?version=3&version_type=external", api.Index, shop},
		{`{"index":{"_id":"1","op_type":"create"}}|{}|`, "PUT", "/shop/_create/1", api.Create, shop},
		{`{"create":{"_id":"1","require_alias":true}}|{}|`, "PUT", "/shop/_create/1?require_alias=true", api.Create, shop},
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{}}|`, "POST", "/shop/_update/1", api.Update, Defaults{Index: "shop", Params: []byte("pipeline=q")}},
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{},"upsert":{}}|`, "POST", "/shop/_update/1", api.Update, shop},
		{`{"update":{"_id":"1","retry_on_conflict":3}}|{"doc":{}}|`, "POST", "/shop/_update/1?retry_on_conflict=3", api.Update, shop},
		{`{"delete":{"_id":"1"}}|`, "DELETE", "/shop/_doc/1", api.Delete, shop},
		{`{"index":{}}|{}|`, "POST", "/shop/_doc", api.IndexAuto, shop},
		{`{"create":{}}|{}|`, "POST", "/shop/_doc?op_type=create", api.IndexAuto, shop},
		{`{"index":{"_type":"t","_id":"1"}}|{}|`, "PUT", "/shop/t/1", api.Index, Defaults{Index: "shop", Types: true}},
		{`{"index":{"_type":"_doc","_id":"1"}}|{}|`, "PUT", "/shop/_doc/1", api.Index, Defaults{Index: "shop", Types: true}},
		{`{"update":{"_type":"t","_id":"1"}}|{"doc":{}}|`, "POST", "/shop/t/1/_update", api.Update, Defaults{Index: "shop", Types: true}},
		{"\r\n\n" + `{ "index" : { "_id" : "1" } }` + "\r|{}\r|", "PUT", "/shop/_doc/1", api.Index, shop},
		{`{"index":{"_id":"1"}}|{}|`, "PUT", "/shop/_doc/1?routing=d&pipeline=q&refresh=true", api.Index,
			Defaults{Index: "shop", Routing: "d", Params: []byte("refresh=true&pipeline=q&routing=d&filter_path=took")}},
		{`{"index":{"_id":"1","pipeline":"own","routing":"own"}}|{}|`, "PUT", "/shop/_doc/1?pipeline=own&routing=own", api.Index,
			Defaults{Index: "shop", Routing: "d", Params: []byte("pipeline=q&routing=d")}},
		{`{"index":{"_id":"1","routing":""}}|{}|`, "PUT", "/shop/_doc/1", api.Index, Defaults{Index: "shop", Routing: "d", Params: []byte("routing=d")}},
		{`{"index":{"_id":"1","routing":null}}|{}|`, "PUT", "/shop/_doc/1?routing=d", api.Index, Defaults{Index: "shop", Routing: "d", Params: []byte("routing=d")}},
		{`{"index":{"_id":"1"}}|{}|`, "PUT", "/shop/_doc/1?refresh=true", api.Index, Defaults{Index: "shop",
			Params: []byte("_source=true&_source_includes=a&_source_excludes=b&refresh=true")}},
		{`{"index":{"_id":"1","_source":true}}|{}|`, "PUT", "/shop/_doc/1", api.Index, shop},
		{`{"update":{"_id":"1"}}|{"doc":{}}|`, "POST", "/shop/_update/1?_source=true&_source_excludes=b", api.Update, Defaults{Index: "shop",
			Params: []byte("_source=true&_source_excludes=b")}},
		{`{"update":{"_id":"1","_source":{"includes":["a","b.*"],"exclude":"c"}}}|{"doc":{}}|`, "POST",
			"/shop/_update/1?_source=true&_source_includes=a%2Cb.*&_source_excludes=c", api.Update, Defaults{Index: "shop", Params: []byte("_source_excludes=b")}},
		{`{"update":{"_id":"1","_source":{"includes":["a,b"]}}}|{"doc":{}}|`, "POST", "/shop/_update/1", api.Update, shop},
		{`{"update":{"_id":"1","_source":false}}|{"doc":{}}|`, "POST", "/shop/_update/1?_source=false", api.Update, Defaults{Index: "shop",
			Params: []byte("_source_includes=b")}},
		{`{"index":{"_id":"1","if_seq_no":1.0,"if_primary_term":10e-1}}|{}|`, "PUT", "/shop/_doc/1?if_seq_no=1&if_primary_term=1", api.Index, shop},
		{`{"index":{"_id":"1","version":300E-2,"version_type":"external"}}|{}|`, "PUT", "/shop/_doc/1?version=3&version_type=external", api.Index, shop},
		{`{"index":{"_id":1.0}}|{}|`, "PUT", "/shop/_doc/1.0", api.Index, shop},
	} {
		items, err := readAll(strings.ReplaceAll(c.text, "|", "\n"), c.d)
		if err != nil || len(items) != 1 {
			t.Errorf("%s: %d items, %v", c.text, len(items), err)
			continue
		}
		method, target := items[0].Request(nil)
		var op api.Op
		api.Parse(method, target, &op)
		if string(method) != c.method || string(target) != c.target || op.Kind != c.kind || items[0].Kind != c.kind {
			t.Errorf("%s: %s %s, which is %s; want %s %s", c.text, method, target, op.Kind, c.method, c.target)
		}
		if names := items[0].Names(); names != namesIn(t, &op) {
			t.Errorf("%s: %+v, and the target names %+v", c.text, names, namesIn(t, &op))
		}
	}
}

// namesIn are the names of a request's document, decoded.
func namesIn(t *testing.T, op *api.Op) (d es.Document) {
	t.Helper()
	for _, name := range []struct {
		from []byte
		into *string
	}{{op.Index, &d.Index}, {op.Type, &d.Type}, {op.ID, &d.ID}} {
		text, err := uri.Decode(nil, name.from)
		if err != nil {
			t.Fatal(err)
		}
		*name.into = string(text)
	}
	return d
}

// What the engine refuses, or this package doesn't know, is left to the engine as a whole.
func TestBulksThatAreOddAreLeftToTheEngine(t *testing.T) {
	for _, text := range []string{
		`{"index":{"_id":"1"}}|{}`, `{"index":{"_id":"1"}}|`, `{"update":{"_id":"1"}}||`, `{"update":{"_id":"1"}}|{"doc":|`, `{"delete":{"_id":"1"}}`, `{"delete":{}}|`, `{"update":{}}|{}|`,
		`{"index":{"_id":"1"},"delete":{}}|{}|`, `{"index":[]}|{}|`, `{"index":1}|{}|`, `[]|{}|`, `x|{}|`, `{}|{}|`, `{"put":{"_id":"1"}}|{}|`,
		`{"delete":{"_id":null}}|`, `{"index":{"_id":["1"]}}|{}|`, `{"index":{"parent":"1"}}|{}|`,
		`{"index":{"_id":"1","_routing":"a"}}|{}|`, `{"delete":{"_id":"1","_version":1}}|`, `{"index":{"_id":"1","_version_type":"external"}}|{}|`,
		`{"update":{"_id":"1","_retry_on_conflict":1}}|{"doc":{}}|`, `{"index":{"_id":"1","_type":"_doc"}}|{}|`,
		`{"update":{"_id":"1","_source":["a"]}}|{"doc":{}}|`, `{"index":{"_id":"1","op_type":["create"]}}|{}|`,
		`{"index":{"_index":""}}|{}|`, `{"index":{"_id":"1","if_seq_no":1}}|{}|`, `{"create":{"_id":"1","if_seq_no":1,"if_primary_term":1}}|{}|`,
		`{"update":{"_id":"1"}}|{"doc":{},"upsert":{},"if_seq_no":1,"if_primary_term":1}|`,
		`{"update":{"_id":"1"}}|{"upsert":{}}|`,
		`{"update":{"_id":"1"}}|{"doc":{},"script":{"source":"x"}}|`,
		`{"index":{"_id":"1","if_seq_no":1,"if_primary_term":1,"version":1,"version_type":"external"}}|{}|`,
		`{"index":{"_id":"1","if_seq_no":-1,"if_primary_term":1}}|{}|`,
		`{"index":{"_id":"1","if_seq_no":1,"if_primary_term":0}}|{}|`,
		`{"delete":{"_id":"1","version":1}}|`,
		`{"delete":{"_id":"1","version_type":"external"}}|`,
		`{"delete":{"_id":"1","version":-1,"version_type":"external_gte"}}|`,
		`{"delete":{"_id":"1","version":1,"version_type":"force"}}|`,
		`{"index":{"_id":"` + strings.Repeat("x", 513) + `"}}|{}|`,
		`{"index":{"_id":"1","pipeline":""}}|{}|`,
		`{"index":{"_id":"1","lock_token":""}}|{}|`,
		`{"update":{"_id":"1","retry_on_conflict":1}}|{"doc":{},"if_seq_no":1,"if_primary_term":1}|`,
		`{"update":{"_id":"1","version":1}}|{"doc":{}}|`, `{"update":{"_id":"1","if_seq_no":1,"if_primary_term":1,"retry_on_conflict":1}}|{"doc":{}}|`,
	} {
		if items, err := readAll(strings.ReplaceAll(text, "|", "\n"), Defaults{Index: "shop"}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %d items, %v", text, len(items), err)
		}
	}
	if items, err := readAll("", Defaults{}); err != nil || len(items) != 0 {
		t.Errorf("%v %v", items, err)
	}
}

// What the engine refuses of one item leaves the others alone, and so does what it passes over.
// The name in the path may be a tenant's.
func TestAnItemElsewhereNamesAnotherIndexThanItsPath(t *testing.T) {
	for _, c := range []struct {
		path, action string
		want         bool
	}{{"shop", `"_index":"shop",`, false}, {"shop", `"_index":"b",`, true}, {"shop", "", false}, {"", `"_index":"b",`, false}} {
		items, err := readAll(`{"index":{`+c.action+`"_id":"1"}}`+"\n{}\n", Defaults{Index: c.path})
		if err != nil || len(items) != 1 || items[0].Elsewhere != c.want {
			t.Errorf("%s in /%s/_bulk: %+v, %v", c.action, c.path, items, err)
		}
	}
}

func TestAnOddItemIsLeftToTheEngineByItself(t *testing.T) {
	for text, odd := range map[string]bool{
		`{"index":{"_id":"1"}}||`: true, `{"create":{"_id":"1"}}|7|`: true, `{"index":{"_id":""}}|{}|`: true, `{"index":{"_id":null,"routing":null}}|{}|`: false,
		`|   |{"index":{"_id":"1"}}| {}|`: false, `{"index":{"_id":"1","op_type":"x"}}|{}|`: false, `{"update":{"_id":"1"}}|{"doc":{}}x|`: false,
		`{"index":{"if_seq_no":1,"if_primary_term":1}}|{}|`: true, `{"index":{"_id":"\ud800"}}|{}|`: true,
		`{"index":{"_id":"1","version":-3}}|{}|`: true, `{"delete":{"_id":"1","version":-4,"version_type":"internal"}}|`: true,
		`{"update":{"_id":"` + strings.Repeat("x", 513) + `"}}|{"doc":{}}|`: true, `{"update":{"_id":"1","pipeline":""}}|{"doc":{}}|`: false,
	} {
		items, err := readAll(strings.ReplaceAll(text, "|", "\n"), Defaults{Index: "shop"})
		if err != nil || len(items) != 1 || items[0].Odd != odd || items[0].Routing != "" {
			t.Errorf("%s: %+v, %v", text, items, err)
		}
	}
}

// Elasticsearch 9 refuses a bulk with such a line, OpenSearch and Elasticsearch 7 take it. Where nobody holds the bulk, it can't be left to
// the engine as a whole.
func TestWhatStandsBehindAnActionIsLeftToTheEngine(t *testing.T) {
	for _, line := range []string{
		`{"index":{"_id":"1"}}x`, `{"index":{"_id":"1"}},`, `{"index":{"_id":"1"}} {"a":1}`, `{"index":{"_id":"1"},"x":1}`, `{"index":{"_id":"1"}`,
		"{\"index\":{\"_id\":\"1\"}}\xff",
	} {
		text := line + "\n{}\n"
		if _, err := readAll(text, Defaults{Index: "shop"}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v", line, err)
		}
		r := NewReader([]byte(text), Defaults{Index: "shop"})
		r.Lenient = true
		it, ok, err := r.Next()
		if err != nil || !ok || !it.Odd || it.ID != "1" || string(it.Text) != text || string(it.Source) != "{}" {
			t.Errorf("%s: %+v, %v", line, it, err)
		}
	}
	for _, line := range []string{`{"index":{"_id":"1"`, `{"index":7}x`, `[{"index":{}}]`, `{"index":{"_id":"1","_id":"2"}}x`, `{"put":{}}x`, `{}x`, `x`, `{"index"`} {
		r := NewReader([]byte(line+"\n{}\n"), Defaults{Index: "shop"})
		r.Lenient = true
		if it, _, err := r.Next(); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %+v, %v", line, it, err)
		}
	}
}

// An engine reads an update's part, and not what stands behind it; a bulk that isn't read names its documents all the same.
func TestWhatStandsBehindAPartIsNoPartOfIt(t *testing.T) {
	text := "{\"update\":{\"_id\":1}}\n{\"doc\":{}} }\n{\"delete\":{\"_id\":\"2\",\"routing\":\"r\"}}x\n\n{\"index\":{\"_index\":\"b\",\"routing\":null}}\n\n{\"x\":{}}\n"
	it, _, err := NewReader([]byte(text), Defaults{Index: "a"}).Next()
	if err != nil || string(it.Source) != `{"doc":{}}` {
		t.Errorf("%q, %v", it.Source, err)
	}
	want := []Name{{"update", "a", "1", "u"}, {"delete", "a", "2", "r"}, {"index", "b", "", "u"}}
	if got, all := Names([]byte(text), Defaults{Index: "a", Routing: "u"}); !slices.Equal(got, want) || all {
		t.Errorf("%v", got)
	}
}

// Whoever looks for documents in a bulk finds them where the engine does, and in place.
func TestActionsComeWithTheirSecondLines(t *testing.T) {
	text := []byte("\n{\"index\":{\"_index\":null}}\r\n{\"a\":1}\r\n{\"delete\":{\"_id\":\"2\"}}\n{\"create\":{\"_index\":\"b\"}} x\n\n{\"put\":{}}\n{\"b\":2}\n")
	var got []string
	for a := range Actions(text, Defaults{Index: "a"}) {
		got = append(got, fmt.Sprintf("%s %s %q %q", a.Verb, a.Index, a.Line.Of(text)[:5], a.Source.Of(text)))
	}
	want := []string{`index a "{\"ind" "{\"a\":1}"`, `delete a "{\"del" ""`, `create b "{\"cre" ""`, ` a "{\"put" ""`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// An engine runs the pipeline that an update or the request names over the upsert, and over nothing else.
func TestAnUpsertThatGoesThroughAPipelineIsFound(t *testing.T) {
	for text, piped := range map[string][2]bool{ // without a pipeline of the request's, and with one
		`{"update":{"_id":"1"}}|{"doc":{},"upsert":{}}|`:                                {false, true},
		`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{},"upsert":{}}|`:                 {true, true},
		`{"update":{"_id":"1","pipeline":"_none"}}|{"doc":{},"upsert":{}}|`:             {false, true}, // Elasticsearch 7 counts the request's
		`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{},"doc_as_upsert":true}|`:        {false, false},
		`{"index":{"_id":"1","pipeline":"p"}}|{"doc":{},"upsert":{}}|`:                  {false, false},
		`{"update":{"_id":"1","pipeline":null}}|{"doc":{},"upsert":{"a":1}}|`:           {false, true},
		`{"update":{"_id":"1","pipeline":7}}|{"script":"ctx._source.n++","upsert":{}}|`: {true, true},
	} {
		for k, params := range []string{"pipeline=_none&refresh=true", "pipeline=q"} {
			items, err := readAll(strings.ReplaceAll(text, "|", "\n"), Defaults{Index: "shop", Params: []byte(params)})
			if err != nil || items[0].Piped != piped[k] {
				t.Errorf("%s with %s: %+v, %v", text, params, items, err)
			}
		}
	}
}

func TestAnUpdateIsToldToTryAgain(t *testing.T) {
	items, err := readAll("\n { \"update\" : { \"_id\":\"1\"}}\r\n{\"doc\":{}}\n", Defaults{Index: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(items[0].Retrying(3)); got != " { \"update\" : {\"retry_on_conflict\":3, \"_id\":\"1\"}}\r\n{\"doc\":{}}\n" {
		t.Errorf("%q", got)
	}
}

// A request for one item's document is said by the bulk as the client would have said it.
func TestRequestsBecomeItems(t *testing.T) {
	for _, c := range []struct{ text, method, target, body, want string }{
		{`{"index":{"_id":"1"}}|{"a":1}|`, "PUT", "/shop/_doc/1?if_seq_no=3&if_primary_term=1", `{"a":2}`,
			`{"index":{"_id":"1","if_seq_no":3,"if_primary_term":1}}|{"a":2}|`},
		{`{"index":{"_index":"shop","_id":"1"}}|{"a":1}|`, "PUT", "/shop/_doc/1?refresh=true&op_type=create", `{}`, `{"create":{"_index":"shop","_id":"1"}}|{}|`},
		{`{"update":{"_id":"é\"","routing":"r"}}|{"doc":{}}|`, "POST", "/shop/_update/x?routing=r&retry_on_conflict=3", `{"doc":{}}`,
			`{"update":{"_id":"é\"","routing":"r","retry_on_conflict":3}}|{"doc":{}}|`},
		{`{"delete":{"_id":"1"}}|`, "DELETE", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", "", `{"delete":{"_id":"1","if_seq_no":0,"if_primary_term":1}}|`},
		{`{"create":{}}|{}|`, "POST", "/shop/_doc?op_type=create", `{}`, `{"create":{}}|{}|`},
		{`{"index":{"_id":"1","dynamic_templates":{"a":"b"}}}|{}|`, "PUT", "/shop/_doc/1", "{\n}", `{"index":{"_id":"1","dynamic_templates":{"a":"b"}}}|{ }|`},
		{`{"index":{"dynamic_templates":{}}}|{}|`, "POST", "/shop/_doc", "{}", `{"index":{"dynamic_templates":{}}}|{}|`},
		{`{"update":{"_id":"1","_source":true}}|{"doc":{}}|`, "POST", "/shop/_update/1?_source=true", "{}", `{"update":{"_id":"1","_source":true}}|{}|`},
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{},"upsert":{}}|`, "POST", "/shop/_update/1", `{"upsert":{}}`, `{"update":{"_id":"1","pipeline":"p"}}|{"upsert":{}}|`},
		{`{"update":{"_id":"1","pipeline":"_none"}}|{"doc":{}}|`, "POST", "/shop/_update/1", `{"doc":{}}`, `{"update":{"_id":"1","pipeline":"_none"}}|{"doc":{}}|`},
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{},"doc_as_upsert":true}|`, "POST", "/shop/_update/1", `{"doc":{},"upsert":{}}`,
			`{"update":{"_id":"1","pipeline":"_none"}}|{"doc":{},"upsert":{}}|`}, // no pipeline runs over a doc_as_upsert
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{}}|`, "PUT", "/shop/_doc/1", `{"a":1}`, `{"index":{"_id":"1","pipeline":"_none"}}|{"a":1}|`},
		{`{"update":{"_id":"1"}}|{"doc":{},"upsert":{}}|`, "PUT", "/shop/_create/1", `{"a":1}`, `{"create":{"_id":"1"}}|{"a":1}|`},
		{`{"update":{"_id":"1","pipeline":"p"}}|{"doc":{}}|`, "DELETE", "/shop/_doc/1", "", `{"delete":{"_id":"1"}}|`},
		{`{"index":{"_id":"1"}}|{}|`, "PUT", "/shop/_doc/1", "{\n}", ""},
		{`{"index":{"_id":"1","routing":""}}|{}|`, "PUT", "/shop/_doc/1", "{}", `{"index":{"_id":"1","routing":""}}|{}|`},
		{`{"update":{"_id":"1","_source":{"includes":["a"]}}}|{"doc":{}}|`, "POST", "/shop/_update/1?_source=true&_source_includes=a&retry_on_conflict=3",
			"{}", `{"update":{"_id":"1","retry_on_conflict":3,"_source":{"includes":["a"]}}}|{}|`},
		{`{"delete":{"_id":"1","routing":""}}|`, "DELETE", "/shop/_doc/1", "", `{"delete":{"_id":"1","routing":""}}|`},
		{`{"index":{"_id":"1","_source":"a"}}|{}|`, "PUT", "/shop/_doc/1", "{\n}", `{"index":{"_id":"1","_source":"a"}}|{ }|`},
		{`{"index":{"_id":"1"}}|{}|`, "PUT", "/shop/_doc/1?unknown=1", "{}", ""},
		{`{"index":{"_id":"1"}}|{}|`, "GET", "/shop/_doc/1", "", ""},
		{`{"index":{"_id":"1"}}|{}|`, "PUT", "/shop/_doc/1?version=1.5", "{}", ""},
	} {
		items, err := readAll(strings.ReplaceAll(c.text, "|", "\n"), Defaults{Index: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		var q request
		q.read(&upstream.Request{Method: c.method, Target: []byte(c.target), Body: []byte(c.body)})
		got, ok := items[0].appendText(nil, &q)
		if ok != (c.want != "") || ok && string(got) != strings.ReplaceAll(c.want, "|", "\n") {
			t.Errorf("%s %s: %q, %v", c.method, c.target, got, ok)
		}
	}
}

// FuzzItems: whatever is read can be said again, and is read as the same.
func FuzzItems(f *testing.F) {
	f.Add("{\"index\":{\"_id\":\"1\",\"routing\":\"a b\"}}\n{\"a\":1}\n{\"delete\":{\"_id\":\"\\u00e9\"}}\n")
	f.Add("{\"update\":{\"_id\":1,\"if_seq_no\":\"3\",\"dynamic_templates\":{\"x\":[]}}}\r\n{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader([]byte(text), Defaults{Index: "shop"})
		for {
			before := r.Rest()
			it, ok, err := r.Next()
			if err != nil || !ok {
				return
			}
			if !strings.HasSuffix(string(it.Text), "\n") || strings.TrimLeft(string(before), "\r\n") != string(it.Text)+string(r.Rest()) {
				t.Fatalf("%q: %q and %q", before, it.Text, r.Rest())
			}
			method, target := it.Request(nil)
			var op api.Op
			if api.Parse(method, target, &op); it.Names() != namesIn(t, &op) {
				t.Fatalf("%q: %+v, and %q names %+v", it.Text, it.Names(), target, namesIn(t, &op))
			}
			var q request
			q.read(&upstream.Request{Method: string(method), Target: target, Body: it.Source})
			again, ok := it.appendText(nil, &q)
			if !ok {
				continue // it goes by itself
			}
			if line, _, _ := strings.Cut(string(again), "\n"); !jsontext.Valid([]byte(line)) {
				t.Fatalf("%q became %q", it.Text, again)
			}
			same, err := readAll(string(again), Defaults{Index: "shop"})
			if err != nil || len(same) != 1 || same[0].ID != it.ID || same[0].Routing != it.Routing || same[0].Index != it.Index ||
				same[0].Kind != it.Kind || string(same[0].Source) != string(it.Source) {
				t.Fatalf("%q became %q: %+v, %v", it.Text, again, same, err)
			}
		}
	})
}
