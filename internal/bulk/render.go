package bulk

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/upstream"
	"optimist/internal/uri"
)

// request has the parts of a request for an item's document alone. It is the client's own request, or that with another guard, or another
// document.
type request struct {
	kind  api.Kind
	query []byte
	guard doc.Numbers // in addition to a guard in the query; zero: none
	body  []byte
}

// read reads the parts of a request that is to be sent.
func (q *request) read(r *upstream.Request) {
	var op api.Op
	api.Parse([]byte(r.Method), r.Target, &op)
	*q = request{kind: op.Kind, query: op.Query, body: r.Body}
}

// appendText appends the text of an item that does the same as a request for its document alone. It reports false if no item of a bulk can
// do what the request does.
func (it *Item) appendText(dst []byte, q *request) ([]byte, bool) {
	verb := it.Verb
	switch q.kind {
	case api.Index, api.Create, api.Update, api.Delete:
		verb = q.kind.String()
	case api.IndexAuto:
	default:
		return dst, false
	}
	dst = append(append(append(dst, '{', '"'), verb...), `":{`...)
	m := members{dst: dst, first: len(dst)}
	it.appendNames(&m)
	known := true
	err := uri.EachParam(q.query, func(name, value []byte) bool {
		known = it.appendParam(&m, string(name), string(value))
		return known
	})
	if err != nil || !known {
		return dst, false
	}
	if q.guard.Known() {
		m.number("if_seq_no", q.guard.SeqNo)
		m.number("if_primary_term", q.guard.PrimaryTerm)
	}
	it.appendPipeline(&m, q.kind)
	if rest := it.rest; len(rest) > 0 {
		if len(m.dst) == m.first {
			rest = rest[1:]
		}
		m.dst = append(m.dst, rest...)
	}
	dst = append(m.dst, "}}\n"...)
	if q.kind == api.Delete {
		return dst, true
	}
	return it.appendSource(dst, q.body)
}

// members writes the members of an object.
type members struct {
	dst   []byte
	first int // where the first member stands
}

// name begins a member. The value has to be appended next.
func (m *members) name(name string) {
	if len(m.dst) > m.first {
		m.dst = append(m.dst, ',')
	}
	m.dst = append(append(append(m.dst, '"'), name...), `":`...)
}

func (m *members) text(name, value string) {
	m.name(name)
	m.dst = gjson.AppendJSONString(m.dst, value)
}

func (m *members) number(name string, n int64) {
	m.name(name)
	m.dst = strconv.AppendInt(m.dst, n, 10)
}

func (m *members) raw(name, value string) {
	m.name(name)
	m.dst = append(m.dst, value...)
}

// appendNames appends the members that name the document. The index is named only if the client's action names it: some clusters refuse
// items that name an index.
func (it *Item) appendNames(m *members) {
	if it.ownIndex {
		m.text("_index", it.Index)
	}
	if it.typed() {
		m.text("_type", it.Type)
	}
	if it.ID != "" {
		m.text("_id", it.ID)
	}
	if it.unrouted {
		m.text("routing", "")
	}
}

// appendPipeline appends the pipeline of an update's action. optimist may send a whole document in place of the update, or an upsert that
// the client hasn't sent. No pipeline that the client names may run over these.
func (it *Item) appendPipeline(m *members, as api.Kind) {
	name := it.pipeline
	switch {
	case it.Kind != api.Update, as == api.Delete:
		return
	case it.pipes && !(it.Piped && as == api.Update):
		name = noPipeline
	}
	if name != "" {
		m.text(shared[0], name)
	}
}

// appendParam appends a query parameter of a request for one document as a member. It reports false for a parameter that this package
// doesn't know.
func (it *Item) appendParam(m *members, name, value string) bool {
	switch name {
	case "refresh", "timeout", "wait_for_active_shards", "op_type", "_source_includes", "_source_excludes": // the bulk's query has them
	case "version", "if_seq_no", "if_primary_term", "retry_on_conflict":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return false
		}
		m.raw(name, value)
	case "routing", "pipeline", "version_type":
		m.text(name, value)
	case "require_alias", "_source":
		switch {
		case name == "_source" && !it.ownSource:
		case value == "true" || value == "false":
			m.raw(name, value)
		default:
			m.text(name, value)
		}
	default:
		return false
	}
	return true
}

// appendSource appends the document. It reports false for a document of several lines: such a document goes by itself, so that it keeps its
// bytes. If the item has members that only a bulk takes, appendSource joins the lines instead.
func (it *Item) appendSource(dst, body []byte) ([]byte, bool) {
	at := len(dst)
	dst = append(dst, body...)
	if bytes.IndexByte(body, '\n') >= 0 || bytes.IndexByte(body, '\r') >= 0 {
		if len(it.rest) == 0 {
			return dst, false
		}
		for k := at; k < len(dst); k++ {
			if dst[k] == '\n' || dst[k] == '\r' { // JSON has no line break within a string, so this is white space
				dst[k] = ' '
			}
		}
	}
	return append(dst, '\n'), true
}
