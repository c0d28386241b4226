package bulk

import (
	"bytes"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/uri"
)

// shared are the parameters of a bulk that apply to all its items, unless an item has its own. The first is the pipeline. The parameters
// from firstOfUpdates on apply to updates alone: the engines take them with no other request for one document. Those from firstOfAll on
// apply to all items, deletes included. The pipeline isn't for updates. The engines run no pipeline over a document that an update changes,
// and at most over one that an update makes. With the pipeline in an update's request, optimist would believe that the engine stores
// another document than the client has sent.
var shared = [...]string{"pipeline", "require_alias", "_source", "_source_includes", "_source_excludes", "refresh", "timeout",
	"wait_for_active_shards"}

const firstOfUpdates, firstOfAll = 2, 5

// noPipeline is the name that stands for no pipeline at all.
const noPipeline = "_none"

// repeated are all parameters that count for each item: the shared ones, and filter_path, which filters the answer to each item.
var repeated = append(shared[:], "filter_path")

// The methods of requests for one document.
var methodPut, methodPost, methodDelete = []byte("PUT"), []byte("POST"), []byte("DELETE")

// roomOfRequest is the number of bytes that suffices for the target of most requests.
func (it *Item) roomOfRequest() int {
	return len("/{}/_update/{}?&op_type=create") + len(it.Index) + len(it.Type) + len(it.ID) + len(it.params)
}

// Request returns the method of a request for the item's document alone, and appends the target.
func (it *Item) Request(target []byte) (method, _ []byte) {
	t := uri.AppendSegment(append(target, '/'), it.Index)
	typed := it.typed()
	endpoint := "_doc"
	method = methodPut
	switch it.Kind {
	case api.Create:
		endpoint = "_create"
	case api.Update:
		method, endpoint = methodPost, "_update"
	case api.Delete:
		method = methodDelete
	case api.IndexAuto:
		method = methodPost
	}
	if typed {
		t = uri.AppendSegment(append(t, '/'), it.Type)
	} else {
		t = append(append(t, '/'), endpoint...)
	}
	if it.ID != "" {
		t = uri.AppendSegment(append(t, '/'), it.ID)
	}
	if typed && endpoint != "_doc" {
		t = append(append(t, '/'), endpoint...)
	}
	params := it.params
	if it.Kind == api.IndexAuto && it.Verb == "create" {
		params = append(params[:len(params):len(params)], "&op_type=create"...)
		params = bytes.TrimPrefix(params, []byte("&"))
	}
	if len(params) > 0 {
		t = append(append(t, '?'), params...)
	}
	return method, t
}

// Names are the names of the item's document, as they stand in the target of its request.
func (it *Item) Names() es.Document {
	d := es.Document{Ref: doc.Ref{Index: it.Index, ID: it.ID}}
	if it.typed() {
		d.Type = it.Type
	}
	return d
}

// Retrying is the text of an update, with retry_on_conflict added. The update must not have one.
func (it *Item) Retrying(times int) []byte {
	out := make([]byte, 0, len(it.Text)+len(`"retry_on_conflict":1000,`))
	out = append(append(out, it.Text[:it.meta]...), `"retry_on_conflict":`...)
	out = append(strconv.AppendInt(out, int64(times), 10), ',')
	return append(out, it.Text[it.meta:]...)
}

// typed reports whether the item names a mapping type of its own (Elasticsearch 6 and 7).
func (it *Item) typed() bool { return it.Type != "" && it.Type != "_doc" }
