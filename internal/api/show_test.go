package api

import (
	"bytes"
	"testing"
)

// What engines get in later versions may show documents: only what is known to show none shows none.
func TestRequestsMayShowDocumentsUnlessTheyAreKnownNotTo(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /shop/_doc/1": true, "POST /shop/_search": true, "POST /_mget": true, "POST /_search/scroll": true, "POST /shop/_msearch": true,
		"POST /_msearch": true, "POST /shop/_search/template": true, "POST /shop/_explain/1": true, "GET /shop/_termvectors/1": true,
		"POST /_plugins/_sql": true, "POST /_sql": true, "POST /_query": true, "GET /shop/_new": true, "GET /_new/a/b/c/d/e": true,
		"SEARCH /shop": false, "SEARCH /shop/_new": true,
		"HEAD /shop/_doc/1": false, "PUT /shop/_doc/1": false, "DELETE /_search/scroll": false, "POST /_bulk": false, "POST /shop/_update/1": false,
		"GET /": false, "GET /shop": false, "POST /shop/_count": false, "GET /_count": false, "GET /_cluster/health": false,
		"GET /_cat/indices": false, "POST /shop/_refresh": false, "GET /shop/_mapping/field/a": false, "POST /shop/_analyze": false,
		"POST /shop/_validate/query": false, "POST /shop/_search/point_in_time": false, "GET /_nodes/http": false,
		"POST /_all/_refresh": false, "GET /_all/_count": false, "GET /_all/_mapping": false, "GET /_all": false, "GET /_all/_search": true,
		"POST /_all/_msearch": true, "GET /_all/_new": true, "GET /shop/product/_count": false, "GET /shop/product/_mapping": false,
		"GET /shop/_doc/_count": true, "POST /shop/product/_msearch": true, "GET /shop/product/_termvectors": true,
		"OPTIONS /shop/_search": false, "OPTIONS /_new": false, "GET /_async_search/status/a": false, "GET /_async_search/a": true,
		"POST /_render/template": false, "POST /_xpack/sql": true, "GET /_xpack/usage": false, "GET /_xpack": false,
		"GET /_ml/info": false, "GET /_ml/datafeeds/a/_preview": true, "POST /_sql/translate": false, "POST /_sql/close": false,
		"GET /_plugins/_security/authinfo": false, "GET /_plugins/_ism/explain/shop": false, "POST /_plugins/_ppl": true,
		"POST /shop/_terms_enum": false, "POST /shop/_rank_eval": false, "GET /_migration/deprecations": false, "GET /_ssl/certificates": false,
	} {
		method, target, _ := bytes.Cut([]byte(request), []byte(" "))
		var op Op
		if Parse(method, target, &op); op.MayShow(method) != want {
			t.Errorf("%s: not %v", request, want)
		}
	}
}
