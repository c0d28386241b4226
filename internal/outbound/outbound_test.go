package outbound

import (
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func TestARequestKeepsTheClientsBytesButForTheGuard(t *testing.T) {
	at := doc.Numbers{SeqNo: 5, PrimaryTerm: 2}
	body := []byte(`{"a":1}`)
	for name, c := range map[string]struct {
		target string
		media  string
		make   func(w *Template) *upstream.Request
		want   string
	}{
		"under a guard":         {"/shop/_doc/%31", "", func(w *Template) *upstream.Request { return w.Guarded(body, at, false) }, "PUT /shop/_doc/%31?if_seq_no=5&if_primary_term=2 Content-Type:text/x X:y"},
		"with parameters":       {"/shop/_doc/1?refresh", "", func(w *Template) *upstream.Request { return w.Guarded(body, at, false) }, "PUT /shop/_doc/1?refresh&if_seq_no=5&if_primary_term=2 Content-Type:text/x X:y"},
		"as a create":           {"/shop/_doc/1?op_type=index", "", func(w *Template) *upstream.Request { return w.Guarded(body, doc.Numbers{}, true) }, "PUT /shop/_doc/1?op_type=create Content-Type:text/x X:y"},
		"of another media type": {"/shop/_doc/1", "text/json", func(w *Template) *upstream.Request { return w.Guarded(body, doc.Numbers{}, false) }, "PUT /shop/_doc/1 X:y Content-Type:text/json"},
		"as it was sent":        {"/shop/_doc/1?a=b", "", func(w *Template) *upstream.Request { return w.AsSent([]byte("PUT"), body, false) }, "PUT /shop/_doc/1?a=b Content-Type:text/x X:y"},
		"as it was sent, as a create": {"/shop/_doc/1", "", func(w *Template) *upstream.Request { return w.AsSent([]byte("PUT"), body, true) },
			"PUT /shop/_doc/1?op_type=create Content-Type:text/x X:y"},
		"with the engine's retries": {"/shop/_doc/1?a=b", "", func(w *Template) *upstream.Request { return w.Retried(body, 3) }, "PUT /shop/_doc/1?a=b&retry_on_conflict=3 Content-Type:text/x X:y"},
		"without retries":           {"/shop/_doc/1?a=b", "", func(w *Template) *upstream.Request { return w.Retried(body, 0) }, "PUT /shop/_doc/1?a=b Content-Type:text/x X:y"},
		"with retries alone":        {"/shop/_doc/1", "", func(w *Template) *upstream.Request { return w.Retried(body, 3) }, "PUT /shop/_doc/1?retry_on_conflict=3 Content-Type:text/x X:y"},
		"as a document": {"/shop/_update/1?a=b&retry_on_conflict=2", "text/json", func(w *Template) *upstream.Request {
			w.AsDocument(w.Media, "retry_on_conflict")
			return w.Guarded(body, at, false)
		}, "PUT /shop/_doc/1?a=b&if_seq_no=5&if_primary_term=2 X:y Content-Type:text/json"},
		"as a document of a type": {"/shop/order/1/_update", "text/json", func(w *Template) *upstream.Request {
			w.AsDocument(w.Media)
			return w.Guarded(body, at, false)
		}, "PUT /shop/order/1?if_seq_no=5&if_primary_term=2 X:y Content-Type:text/json"},
		"as an update": {"/shop/_doc/1?routing=r&refresh", "", func(w *Template) *upstream.Request { return w.Update(body, nil, []byte("pretty")) },
			"POST /shop/_update/1?routing=r&pretty Content-Type:text/x X:y"},
	} {
		var op api.Op
		method := "PUT"
		if strings.Contains(c.target, "/_update") {
			method = "POST"
		}
		api.Parse([]byte(method), []byte(c.target), &op)
		w := &Template{Op: &op, Method: []byte(method), Path: op.Path, Query: op.Query, Fields: []wire.Field{
			field("Content-Type", "text/x"), field("If-Match", `"5-1"`), field("Accept-Encoding", "gzip"), field("Content-Length", "7"),
			field("Expect", "100-continue"), field("Optimist-Session", "s"), field("X", "y"),
		}}
		if c.media != "" {
			w.Media = []byte(c.media)
		}
		for range 2 { // in the same room
			r := c.make(w)
			got := []string{r.Method, string(r.Target)}
			for _, f := range r.Fields {
				got = append(got, string(f.Name)+":"+string(f.Value))
			}
			if strings.Join(got, " ") != c.want || string(r.Body) != string(body) {
				t.Errorf("%s: %s %s", name, strings.Join(got, " "), r.Body)
			}
		}
		if string(op.Path) != strings.SplitN(c.target, "?", 2)[0] || string(op.Query) != strings.TrimPrefix(c.target[len(op.Path):], "?") {
			t.Errorf("%s: the client's own bytes are %s %s", name, op.Path, op.Query)
		}
	}
}

func field(name, value string) wire.Field {
	return wire.Field{Name: []byte(name), Value: []byte(value)}
}
