package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/uri"
)

func TestRequestLinesAreToldApart(t *testing.T) {
	for _, c := range []struct {
		method, target string
		kind           Kind
		index, id      string
	}{
		{"PUT", "/shop/_doc/1", Index, "shop", "1"},
		{"POST", "/shop/_doc/1?refresh=true", Index, "shop", "1"},
		{"PUT", "/shop/_doc/1?op_type=create", Create, "shop", "1"},
		{"PUT", "/shop/_doc/1?op%5Ftype=create", Create, "shop", "1"},
		{"PUT", "/shop/_doc/1?a=b;op_type=create", Create, "shop", "1"},
		{"POST", "/shop/_doc", IndexAuto, "shop", ""},
		{"POST", "/shop/_doc/", IndexAuto, "shop", ""},
		{"PUT", "/shop/_create/a%2Fb", Create, "shop", "a%2Fb"},
		{"POST", "/shop/_update/1", Update, "shop", "1"},
		{"PUT", "/shop/_update/1", Other, "shop", ""},
		{"DELETE", "/shop/_doc/1", Delete, "shop", "1"},
		{"PATCH", "/shop/_doc/1?upsert=true", Patch, "shop", "1"},
		{"PATCH", "/shop/_doc/a%2Fb", Patch, "shop", "a%2Fb"},
		{"POST", "/shop/_patch/1", Patch, "shop", "1"},
		{"PUT", "/shop/_patch/1", Other, "shop", ""},
		{"PATCH", "/shop/_patch/1", Other, "shop", ""},
		{"PATCH", "/shop/_doc", Other, "shop", ""},
		{"PATCH", "/shop", Other, "shop", ""},
		{"PATCH", "/shop/_update/1", Other, "shop", ""},
		{"PATCH", "/_aliases", IndexAdmin, "", ""},
		{"PATCH", "/shop/item/1", Patch, "shop", "1"},
		{"POST", "/shop/item/1/_patch", Patch, "shop", "1"},
		{"POST", "/shop/_doc/1/_patch", Patch, "shop", "1"},
		{"GET", "/shop/_doc/1", Get, "shop", "1"},
		{"HEAD", "/shop/_doc/1", Get, "shop", "1"},
		{"GET", "/shop/_source/1", Source, "shop", "1"},
		{"GET", "/_mget", Mget, "", ""},
		{"POST", "/shop/_mget", Mget, "shop", ""},
		{"POST", "/shop,b*/_search?q=a", Search, "shop,b*", ""},
		{"POST", "/_bulk", Bulk, "", ""},
		{"PUT", "/shop/_bulk", Bulk, "shop", ""},
		{"POST", "/shop/_update_by_query", UpdateByQuery, "shop", ""},
		{"POST", "/shop/_delete_by_query", DeleteByQuery, "shop", ""},
		{"PUT", "/shop/item/1", Index, "shop", "1"},
		{"PUT", "/shop/item/1/_create", Create, "shop", "1"},
		{"POST", "/shop/item/1/_update", Update, "shop", "1"},
		{"PUT", "/shop/_doc/1/_create", Create, "shop", "1"},
		{"POST", "/shop/item/_bulk", Bulk, "shop", ""},
		{"GET", "/shop/item/1", Get, "shop", "1"},
		{"DELETE", "/shop/item/1", Delete, "shop", "1"},
		{"GET", "/_nodes/http", NodesHTTP, "", ""},
		{"GET", "/_nodes/_all/http", NodesHTTP, "", ""},
		{"GET", "/_nodes", NodesHTTP, "", ""},
		{"GET", "/_nodes/stats", Other, "", ""},
		{"GET", "/_nodes/http,jvm", NodesHTTP, "", ""},
		{"PUT", "/shop", IndexAdmin, "shop", ""},
		{"DELETE", "/shop", IndexAdmin, "shop", ""},
		{"POST", "/_aliases", IndexAdmin, "", ""},
		{"GET", "/_aliases", Other, "", ""},
		{"PUT", "/shop/_alias/a", IndexAdmin, "shop", ""},
		{"GET", "/shop/_mapping", Other, "shop", ""},
		{"GET", "/", Other, "", ""},
		{"OPTIONS", "/_aliases", Other, "", ""},
		{"OPTIONS", "/shop/_alias/a", Other, "shop", ""},
		{"PUT", "/_snapshot/r/s", Other, "", ""},
		{"POST", "/_all/_search", Other, "", ""},
		{"POST", "/_all", Other, "", ""},
		{"PUT", "//shop/_doc/1", Other, "", ""},
		{"PUT", "/shop/_doc/1//", Index, "shop", "1"},
		{"POST", "/shop/_doc///", IndexAuto, "shop", ""},
		{"GET", "/shop/_source/1//?routing=a", Source, "shop", "1"},
		{"PUT", "/shop/_doc//1", Other, "", ""},
		{"PUT", "/shop/_doc/1#a", Index, "shop", "1"},
		{"PUT", "/shop/_doc/1#a/b", Index, "shop", "1"},
		{"PUT", "/shop/_doc/1?refresh=true#a", Index, "shop", "1"},
		{"PUT", "/shop//1", Other, "shop", ""},
		{"PUT", "http://x/shop/_doc/1", Other, "", ""},
		{"GET", "/_cat/indices", Other, "", ""},
		{"POST", "/_all/_bulk", Bulk, "_all", ""},
		{"PUT", "/_any/_bulk", Bulk, "_any", ""},
		{"POST", "/_nodes/_bulk/", Bulk, "_nodes", ""},
		{"POST", "/_all/t/_bulk", Bulk, "_all", ""},
		{"POST", "/shop//_bulk", Bulk, "shop", ""},
		{"POST", "//_bulk", Bulk, "", ""},
		{"PUT", "///_bulk", Bulk, "", ""},
		{"POST", "//t/_bulk", Bulk, "", ""},
		{"POST", "//_bulk/stream", Bulk, "", ""},
		{"POST", "/_any/_bulk/stream", Bulk, "_any", ""},
		{"POST", "//_update_by_query", UpdateByQuery, "", ""},
		{"POST", "//_doc/1", Other, "", ""},
		{"POST", "//", Other, "", ""},
		{"PUT", "///", Other, "", ""},
		{"POST", "////_bulk", Other, "", ""},
		{"GET", "/_any/_bulk", Other, "", ""},
		{"POST", "/_bulk/stream", Bulk, "", ""},
		{"PUT", "/shop/_bulk/stream", Bulk, "shop", ""},
		{"POST", "/_all/_delete_by_query", DeleteByQuery, "_all", ""},
		{"POST", "/_all/t/_delete_by_query", DeleteByQuery, "_all", ""},
		{"POST", "/_all//_update_by_query", UpdateByQuery, "_all", ""},
		{"POST", "/shop//_update_by_query", UpdateByQuery, "shop", ""},
		{"POST", "/shop//1/_update", Other, "shop", ""},
		{"PUT", "/%3Clogs-%7Bnow%2Fd%7D%3E/_doc/1", Index, "%3Clogs-%7Bnow%2Fd%7D%3E", "1"},
	} {
		var op Op
		Parse([]byte(c.method), []byte(c.target), &op)
		if op.Kind != c.kind || string(op.Index) != c.index || string(op.ID) != c.id {
			t.Errorf("%s %s: got %v index %q id %q, want %v %q %q", c.method, c.target, op.Kind, op.Index, op.ID, c.kind, c.index, c.id)
		}
	}
}

func TestChangesAfterWhichNumbersMeanNothingAreToldApart(t *testing.T) {
	for line, want := range map[[2]string]bool{
		{"DELETE", "/shop"}: true, {"PUT", "/shop"}: true, {"POST", "/_aliases"}: true, {"PUT", "/shop/_alias/a"}: true,
		{"POST", "/_snapshot/r/s/_restore"}: true, {"POST", "/logs/_rollover"}: true, {"DELETE", "/_all"}: true, {"PUT", "/_all/_alias/a"}: true,
		{"PUT", "/shop/_mapping"}: false, {"PUT", "/shop/_settings"}: false, {"PUT", "/_all/_settings"}: false, {"PUT", "/_index_template/t"}: false,
		{"PUT", "/_ingest/pipeline/p"}: false,
	} {
		var op Op
		Parse([]byte(line[0]), []byte(line[1]), &op)
		if op.Kind != IndexAdmin || op.Renumbers != want {
			t.Errorf("%v: %v, renumbers %v, want %v", line, op.Kind, op.Renumbers, want)
		}
	}
}

// Elasticsearch 7 takes these for endpoints of the type _doc, other engines for documents of those names.
func TestEndpointsOfTheTypeAreNoDocumentsWhereThereAreTypes(t *testing.T) {
	for line, want := range map[string]Kind{
		"POST _bulk": Bulk, "PUT _bulk": Bulk, "GET _mget": Mget, "POST _search": Search, "GET _search": Search, "POST _count": Other, "GET _count": Other,
		"POST _msearch": Other, "PUT _mapping": IndexAdmin, "POST _mappings": IndexAdmin, "GET _mapping": Other, "POST _delete_by_query": DeleteByQuery,
		"POST _update_by_query": UpdateByQuery, "GET _termvectors": Other,
		"GET _bulk": Get, "PUT _search": Index, "DELETE _bulk": Delete, "HEAD _search": Get, "PUT _update_by_query": Index, "POST _refresh": Index,
		"GET _mappings": Get, "PUT _x": Index,
	} {
		method, id, _ := strings.Cut(line, " ")
		for _, types := range []Types{TypesUnknown, NoTypes, HasTypes} {
			for _, of := range []string{"_doc", "t"} {
				var op Op
				Parse([]byte(method), []byte("/shop/"+of+"/"+id+"?a=b"), &op)
				op.Settle([]byte(method), types)
				document := document(&op, methodOf([]byte(method)))
				expected := want
				switch {
				case want.Write() && want == document, want == Get:
				case of == "t": // only engines with types have it
				case types == TypesUnknown:
					expected = Other
				case types == NoTypes:
					expected = document
				}
				if op.Kind != expected || op.Kind != Other && (string(op.ID) == id) != (op.Kind == document) {
					t.Errorf("%s of %s, types %d: %v %q, want %v", line, of, types, op.Kind, op.ID, expected)
				}
			}
		}
	}
}

// TestAPatchOfADocumentWithATypeIsForTheEngineWithoutTypes, which has no such path.
func TestAPatchOfADocumentWithATypeIsForTheEngineWithoutTypes(t *testing.T) {
	for _, c := range []struct {
		method, target string
		withoutTypes   Kind
	}{
		{"PATCH", "/shop/t/1", Other}, {"POST", "/shop/t/1/_patch", Other},
		{"PATCH", "/shop/_doc/1", Patch}, {"POST", "/shop/_doc/1/_patch", Patch}, {"POST", "/shop/_patch/1", Patch}, // which all engines have
	} {
		for types, want := range map[Types]Kind{TypesUnknown: Patch, HasTypes: Patch, NoTypes: c.withoutTypes} {
			var op Op
			Parse([]byte(c.method), []byte(c.target), &op)
			if op.Settle([]byte(c.method), types); op.Kind != want {
				t.Errorf("%s %s, types %d: %v, want %v", c.method, c.target, types, op.Kind, want)
			}
		}
	}
}

func TestFragmentsAreSeen(t *testing.T) {
	for target, want := range map[string]bool{
		"/shop/_doc/1": false, "/shop/_doc/1%23": false, "/shop/_doc/1#": true, "/shop/_doc/1?routing=a#b": true, "/shop#/_doc/1": true,
	} {
		var op Op
		if Parse([]byte("PUT"), []byte(target), &op); op.Fragment != want {
			t.Errorf("%s: %v", target, op.Fragment)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("PUT", "/shop/_doc/1?op_type=create")
	f.Add("GET", "/_nodes/a,b/http")
	f.Fuzz(func(t *testing.T, method, target string) {
		var op Op
		Parse([]byte(method), []byte(target), &op)
		if op.Kind.Write() && (len(op.Index) == 0 || len(op.ID) == 0) {
			t.Fatalf("%q %q: a write of %q without a document", method, target, op.Kind)
		}
		kept := uri.Without(nil, op.Query, "if_seq_no")
		if _, ok := uri.Param(kept, "if_seq_no"); ok {
			t.Fatalf("%q: the parameter is still in %q", op.Query, kept)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var op Op
	m, target := []byte("PUT"), []byte("/shop/_doc/12345?refresh=wait_for")
	b.ReportAllocs()
	for b.Loop() {
		Parse(m, target, &op)
	}
}

// An error may quote what a client has sent. Its answer stays short, however long that is.
func TestAReasonIsReadAsItIsMeant(t *testing.T) {
	e := Error{Status: 400, Type: "a", Reason: "candidate.stock < 0 && b > 1"}
	if got := string(e.Append(nil)); strings.Count(got, `"reason":"candidate.stock < 0 && b > 1"`) != 2 {
		t.Error(got)
	}
}

func TestALongReasonIsCut(t *testing.T) {
	e := Error{Status: 400, Type: "t", Reason: strings.Repeat("\xff", 1<<20)}
	if b := e.Append(nil); len(b) > 300<<10 || !gjson.ValidBytes(b) {
		t.Errorf("%d bytes", len(b))
	}
	e.Reason = strings.Repeat("a", 1000)
	if b := e.Append(nil); gjson.GetBytes(b, "error.reason").Str != e.Reason {
		t.Errorf("%s", b)
	}
}
