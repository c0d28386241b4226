// Package api reads a request line of the engine's document API: the operation, the index and the document.
//
// It judges by the request line alone: it doesn't know whether an index exists, what an alias stands for, or what a body
// holds. Names are kept as they stood in the request; Decode gives their meaning.
package api

import (
	"bytes"

	"optimist/internal/uri"
)

// Kind is an operation of the engine's API, as far as optimist treats it differently from others.
type Kind uint8

// The kinds. Everything that isn't named is Other and is forwarded as it is.
const (
	Other         Kind = iota
	Index              // PUT|POST /{index}/_doc/{id}: the document is created or replaced
	IndexAuto          // POST /{index}/_doc: the engine makes the id
	Create             // PUT|POST /{index}/_create/{id}, or op_type=create: refused with 409 when the document exists
	Update             // POST /{index}/_update/{id}: merged or scripted by the engine itself
	Delete             // DELETE /{index}/_doc/{id}
	Patch              // PATCH /{index}/_doc/{id}, POST /{index}/_patch/{id}: optimist's own, no engine has it
	Get                // GET|HEAD /{index}/_doc/{id}
	Source             // GET|HEAD /{index}/_source/{id}
	Mget               // GET|POST [/{index}]/_mget
	Search             // GET|POST [/{index}]/_search
	Scroll             // GET|POST /_search/scroll[/{scroll_id}]
	Bulk               // PUT|POST [/{index}]/_bulk
	UpdateByQuery      // POST /{index}/_update_by_query
	DeleteByQuery      // POST /{index}/_delete_by_query
	Reindex            // POST /_reindex
	NodesHTTP          // GET /_nodes[/{nodes}]/http: what sniffing clients ask
	IndexAdmin         // a change of indices, aliases, settings, templates or pipelines: see Op.Renumbers
	Lock               // a request for a lock, which optimist answers itself. Parse doesn't know them: their path is configured
	kinds
)

var kindNames = [kinds]string{"other", "index", "index_auto", "create", "update", "delete", "patch", "get", "source", "mget", "search",
	"scroll", "bulk", "update_by_query", "delete_by_query", "reindex", "nodes_http", "index_admin", "lock"}

// String is the kind's name in logs and metric labels.
func (k Kind) String() string {
	if k >= kinds {
		return "other"
	}
	return kindNames[k]
}

// Kinds is the number of kinds, for arrays indexed by Kind.
const Kinds = int(kinds)

// Write reports whether the operation changes exactly one document whose id the client names.
func (k Kind) Write() bool {
	return k == Index || k == Create || k == Update || k == Delete || k == Patch
}

// Read reports whether the operation reads documents whose revisions can become bases.
func (k Kind) Read() bool { return k == Get || k == Source || k == Mget || k == Search || k == Scroll }

// Op is a request line, taken apart. Its slices point into the target that Parse was given. The zero value is Other.
type Op struct {
	Kind  Kind
	Head  bool // the method is HEAD: the answer has no body
	Typed bool // the path names a mapping type (Elasticsearch 6 and 7)
	// Renumbers says of an IndexAdmin that an index may be another one afterwards, or a name stand for another: sequence numbers
	// that were known mean nothing any more. Without it only what is done to documents that are written may change.
	Renumbers bool
	// Ambiguous says that engines with mapping types take the path for an endpoint of the type _doc, and others for a document with the
	// endpoint's name as its id. Parse takes it for the document: see Settle. If it isn't known what the engine has, the Kind is Other.
	Ambiguous bool
	// Stream says of a Bulk that its items come one by one, and that each is answered before the next: OpenSearch's /_bulk/stream.
	Stream bool
	// Fragment says that the target has a number sign. Engines differ in what that does to the path before it, and read no
	// parameters behind it: nothing that is added to such a request would be heeded. The rest is what is before it, Path and
	// Query are whole.
	Fragment bool
	Index    []byte // the index as it stood in the path, percent-encoded; may be a list, a pattern, an alias; empty if none
	Type     []byte // the mapping type of a typed path, percent-encoded
	ID       []byte // the document id as it stood in the path, percent-encoded
	Path     []byte // the target up to the question mark
	Query    []byte // what follows the question mark, without it
}

// Parse reads the operation from a method and a request target in origin form. It keeps the target's bytes. An absolute-form
// target, or a path that it can't judge (an encoded slash in the index, an empty segment), is Other.
func Parse(method, target []byte, op *Op) {
	*op = Op{Path: target, Fragment: bytes.IndexByte(target, '#') >= 0}
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		op.Path, op.Query = target[:i], target[i+1:]
	}
	path := op.told()
	if len(path) < 2 || path[0] != '/' {
		return
	}
	var segs [5][]byte
	n := split(path[1:], &segs)
	if n == 0 {
		return
	}
	m := methodOf(method)
	op.Head = m == mHEAD
	switch first := segs[0]; {
	case len(first) == 0:
		if n > 1 {
			parseMany(op, m, segs[:n])
		}
	case first[0] == '_':
		parseGlobal(op, m, segs[:n])
	default:
		parseIndex(op, m, segs[:n])
	}
}

// told is the part of the path that the operation is told by.
func (op *Op) told() []byte {
	path, _, _ := bytes.Cut(op.Path, []byte("#"))
	return path
}

// Segments are the parts of the path that the operation was told by, percent-encoded. Whoever takes more from the path than Op has takes
// it from them: Path may go on behind a number sign.
func (op *Op) Segments() [][]byte {
	return bytes.Split(bytes.TrimRight(bytes.TrimPrefix(op.told(), []byte("/")), "/"), []byte("/"))
}

// methods is a set of HTTP methods.
type methods uint8

const (
	mGET methods = 1 << iota
	mHEAD
	mPOST
	mPUT
	mDELETE
	mPATCH

	reads   = mGET | mHEAD
	writes  = mPUT | mPOST
	changes = writes | mDELETE | mPATCH // what may change something
)

// methodOf is the method of that name, or none.
func methodOf(b []byte) methods {
	switch string(b) {
	case "GET":
		return mGET
	case "HEAD":
		return mHEAD
	case "POST":
		return mPOST
	case "PUT":
		return mPUT
	case "DELETE":
		return mDELETE
	case "PATCH":
		return mPATCH
	}
	return 0
}

func (m methods) in(set methods) bool { return m&set != 0 }

// split cuts a path at its slashes. It returns 0 for a path with more than five segments, or with an empty one behind the second. The first
// two may be empty: engines take these for an index and, if they have types, for a type. Slashes at the end don't count, as in the engines.
func split(path []byte, segs *[5][]byte) int {
	path = bytes.TrimRight(path, "/")
	n := 0
	for {
		i := bytes.IndexByte(path, '/')
		seg := path
		if i >= 0 {
			seg = path[:i]
		}
		if len(seg) == 0 && n > 1 || n == len(segs) {
			return 0
		}
		segs[n] = seg
		n++
		if i < 0 {
			return n
		}
		path = path[i+1:]
	}
}

// parseGlobal reads paths whose first segment is an endpoint.
func parseGlobal(op *Op, m methods, segs [][]byte) {
	first := string(segs[0])
	parseMany(op, m, segs)
	switch {
	case op.Kind != Other:
	case first == "_search" && len(segs) > 1 && len(segs) <= 3 && string(segs[1]) == "scroll" && m.in(mGET|mPOST):
		op.Kind = Scroll
	case first == "_reindex" && len(segs) == 1 && m == mPOST:
		op.Kind = Reindex
	case first == "_nodes" && m == mGET && nodesHTTP(segs):
		op.Kind = NodesHTTP
	case m.in(changes):
		op.Kind, op.Renumbers = globalAdmin(first, m, segs)
	}
}

// parseMany is parseGlobal for what writes many documents. Before _bulk the engines take anything for an index, also nothing, and the items
// may name others. In a request by query, nothing stands for all indices.
func parseMany(op *Op, m methods, segs [][]byte) {
	first, last := string(segs[0]), string(segs[len(segs)-1])
	switch {
	case len(segs) == 1:
		op.Kind = several(first, m)
	case first == "_bulk" && len(segs) == 2 && last == "stream" && m.in(writes):
		op.Kind, op.Stream = Bulk, true
	case len(segs) > 3:
	case last == "_bulk" && m.in(writes), last == "stream" && string(segs[1]) == "_bulk",
		(first == "_all" || first == "") && byQuery(last, m) != Other:
		parseIndex(op, m, segs)
	}
}

// Types says whether the engine has mapping types in its paths, as Elasticsearch 6 and 7 do.
type Types uint8

// What is known of the engine.
const (
	TypesUnknown Types = iota
	NoTypes
	HasTypes
)

// Settle takes an ambiguous operation for what it is for an engine with these types. Where that isn't known, it stays ambiguous, and is
// Other: the engine decides. A patch of a document with a type of its own is Other if the engine has no types: it would be read at one
// path, and written at another, which the engine doesn't have.
func (op *Op) Settle(method []byte, types Types) {
	if op.Kind == Patch && op.Typed && string(op.Type) != "_doc" && types == NoTypes {
		op.Kind, op.ID = Other, nil
	}
	if !op.Ambiguous || types == NoTypes {
		return
	}
	op.Kind, op.ID, op.Ambiguous = Other, nil, types == TypesUnknown
	if types == HasTypes {
		parseTyped(op, methodOf(method), op.Segments())
	}
}

// ofType reports whether a type has an endpoint of that name for the method. For other methods it is the id of a document.
func ofType(endpoint string, m methods) bool {
	switch endpoint {
	case "_bulk":
		return m.in(writes)
	case "_mget", "_search", "_msearch", "_count", "_termvectors", "_mtermvectors":
		return m.in(mGET | mPOST)
	case "_mapping":
		return m.in(mGET | writes)
	case "_mappings":
		return m.in(writes)
	case "_update_by_query", "_delete_by_query":
		return m == mPOST
	}
	return false
}

// several is the kind of a request to an endpoint for several documents: of the cluster, of an index, or of a type.
func several(endpoint string, m methods) Kind {
	switch {
	case endpoint == "_bulk" && m.in(writes):
		return Bulk
	case endpoint == "_mget" && m.in(mGET|mPOST):
		return Mget
	case endpoint == "_search" && m.in(mGET|mPOST):
		return Search
	}
	return Other
}

// one is the kind of a request to an endpoint for one document, which the path names.
func one(endpoint string, m methods) Kind {
	switch {
	case endpoint == "_create" && m.in(writes):
		return Create
	case endpoint == "_update" && m == mPOST:
		return Update
	case endpoint == "_patch" && m == mPOST:
		return Patch
	case endpoint == "_source" && m.in(reads):
		return Source
	}
	return Other
}

// document is the kind of a request to a document itself.
func document(op *Op, m methods) Kind {
	switch {
	case m.in(writes):
		return indexKind(op)
	case m == mDELETE:
		return Delete
	case m == mPATCH:
		return Patch
	case m.in(reads):
		return Get
	}
	return Other
}

// byQuery is the kind of a request that changes what a query finds in an index.
func byQuery(endpoint string, m methods) Kind {
	switch {
	case endpoint == "_update_by_query" && m == mPOST:
		return UpdateByQuery
	case endpoint == "_delete_by_query" && m == mPOST:
		return DeleteByQuery
	}
	return Other
}

// nodesHTTP reports whether /_nodes/… asks for the http section: as /_nodes/http, /_nodes/{nodes}/http, in a list, or
// with all sections.
func nodesHTTP(segs [][]byte) bool {
	if len(segs) == 1 {
		return true
	}
	for _, part := range bytes.Split(segs[len(segs)-1], []byte(",")) {
		switch string(part) {
		case "http", "_all":
			return true
		}
	}
	// /_nodes/{nodes}: every section of those nodes, unless the one segment names other sections
	return len(segs) == 2 && !metricList(segs[1])
}

// metricList reports whether a segment names sections of the nodes API other than http.
func metricList(seg []byte) bool {
	for _, part := range bytes.Split(seg, []byte(",")) {
		switch string(part) {
		case "settings", "os", "process", "jvm", "thread_pool", "transport", "plugins", "ingest", "indices", "aggregations",
			"search_pipelines", "stats", "usage", "hot_threads", "reload_secure_settings", "remote_cluster_server", "breaker",
			"fs", "discovery", "none", "_none":
			return true
		}
	}
	return false
}

// globalAdmin tells what a change at an endpoint of the whole cluster does to indices.
func globalAdmin(endpoint string, m methods, segs [][]byte) (k Kind, renumbers bool) {
	switch endpoint {
	case "_aliases", "_alias", "_data_stream":
		return IndexAdmin, true
	case "_template", "_index_template", "_component_template", "_ingest", "_settings", "_mapping":
		return IndexAdmin, false
	case "_snapshot":
		if last := string(segs[len(segs)-1]); last == "_restore" || last == "_mount" {
			return IndexAdmin, true
		}
	case "_all":
		if len(segs) > 1 {
			return indexAdmin(string(segs[1]))
		}
		if m == mDELETE {
			return IndexAdmin, true
		}
	}
	return Other, false
}

// indexAdmin tells what a change at an endpoint of an index does to it.
func indexAdmin(endpoint string) (k Kind, renumbers bool) {
	switch endpoint {
	case "_alias", "_aliases", "_rollover", "_shrink", "_split", "_clone":
		return IndexAdmin, true
	case "_settings", "_mapping", "_mappings", "_close", "_open", "_freeze", "_unfreeze", "_block":
		return IndexAdmin, false
	}
	return Other, false
}

// parseIndex reads paths whose first segment is an index.
func parseIndex(op *Op, m methods, segs [][]byte) {
	op.Index = segs[0]
	if len(segs) == 1 {
		if m.in(mPUT | mDELETE) {
			op.Kind, op.Renumbers = IndexAdmin, true
		}
		return
	}
	switch end := string(segs[1]); {
	case end == "" || end[0] != '_', end == "_doc" && len(segs) == 4: // the type may be _doc
		parseTyped(op, m, segs)
	case end == "_doc" && len(segs) == 2 && m == mPOST:
		op.Kind = IndexAuto
	case end == "_doc" && len(segs) == 3:
		op.name(document(op, m), segs[2])
		op.Ambiguous = ofType(string(segs[2]), m)
	case end == "_bulk" && len(segs) == 3 && string(segs[2]) == "stream" && m.in(writes):
		op.Kind, op.Stream = Bulk, true
	case len(segs) == 3:
		op.name(one(end, m), segs[2])
	case len(segs) == 2:
		if op.Kind = several(end, m); op.Kind == Other {
			op.Kind = byQuery(end, m)
		}
	}
	if op.Kind == Other && m.in(changes) {
		op.Kind, op.Renumbers = indexAdmin(string(segs[1]))
	}
}

// parseTyped reads the paths of Elasticsearch 6 and 7: /{index}/{type}/{id}[/_create|/_update|/_patch|/_source].
func parseTyped(op *Op, m methods, segs [][]byte) {
	op.Type, op.Typed = segs[1], true
	switch {
	case len(segs) == 2 && m == mPOST:
		op.Kind = IndexAuto
	case len(segs) == 3 && ofType(string(segs[2]), m):
		end := string(segs[2])
		if op.Kind = several(end, m); op.Kind == Other {
			op.Kind = byQuery(end, m)
		}
		if op.Kind == Other && m.in(changes) {
			op.Kind, op.Renumbers = indexAdmin(end)
		}
	case len(segs[1]) == 0: // no document has such a type
	case len(segs) == 3:
		op.name(document(op, m), segs[2])
	case len(segs) == 4:
		op.name(one(string(segs[3]), m), segs[2])
	}
}

// name makes the operation one of that kind on the document of that id; nothing if it is Other.
func (op *Op) name(k Kind, id []byte) {
	if k != Other {
		op.Kind, op.ID = k, id
	}
}

// indexKind is Create where op_type says so.
func indexKind(op *Op) Kind {
	if isOpType(op.Query, "create") {
		return Create
	}
	return Index
}

// isOpType reports whether op_type has this value, in upper or lower case, as the engine has it.
func isOpType(query []byte, want string) bool {
	v, given := uri.Param(query, "op_type")
	if !given {
		return false
	}
	var buf [16]byte
	v, err := uri.DecodeValue(buf[:0], v)
	return err == nil && bytes.EqualFold(v, []byte(want))
}

// CreateQuery is the query of a write that makes a document only where there is none. If the client's op_type is none that the engine
// knows, it stays, and nothing takes its place: the engine refuses the write, and says why.
func CreateQuery(query []byte) []byte {
	if _, given := uri.Param(query, "op_type"); given {
		if !isOpType(query, "index") && !isOpType(query, "create") {
			return query
		}
		query = uri.Without(nil, query, "op_type") // given twice, it would be the engine's choice
	}
	if len(query) > 0 {
		query = append(query[:len(query):len(query)], '&')
	}
	return append(query, "op_type=create"...)
}
