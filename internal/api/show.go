package api

import "bytes"

// silent are the endpoints whose answers show no documents that are stored: they count them, or tell of the cluster, its indices and its
// settings. An endpoint that isn't here may be one that engines have got since.
var silent = map[string]bool{
	"_alias": true, "_aliases": true, "_analyze": true, "_autoscaling": true, "_cache": true, "_cat": true, "_ccr": true, "_close": true,
	"_cluster": true, "_component_template": true, "_count": true, "_dangling": true, "_data_stream": true, "_enrich": true,
	"_features": true, "_field_caps": true, "_flush": true, "_forcemerge": true, "_health_report": true, "_ilm": true,
	"_index_template": true, "_info": true, "_ingest": true, "_license": true, "_logstash": true, "_mapping": true, "_mappings": true,
	"_migration": true, "_nodes": true, "_open": true, "_pit": true, "_query_rules": true, "_rank_eval": true, "_recovery": true,
	"_refresh": true, "_remote": true, "_resolve": true, "_rollover": true, "_scripts": true, "_search_shards": true, "_security": true,
	"_segments": true, "_settings": true, "_shard_stores": true, "_slm": true, "_snapshot": true, "_ssl": true, "_stats": true,
	"_synonyms": true, "_tasks": true, "_template": true, "_terms_enum": true, "_validate": true,
}

// silentBelow are such endpoints below others that show documents, as _xpack/sql does.
var silentBelow = map[string]bool{
	"_async_search/status": true, "_ml/info": true, "_plugins/_ism": true, "_plugins/_security": true, "_render/template": true,
	"_sql/close": true, "_sql/translate": true, "_watcher/stats": true, "_xpack/": true, "_xpack/license": true, "_xpack/ml": true,
	"_xpack/security": true, "_xpack/usage": true,
}

// MayShow reports whether the answer to the request may show documents that are stored, or parts of them. It is false for a request that
// writes: what its answer shows counts with the write.
func (op *Op) MayShow(method []byte) bool {
	switch {
	case op.Head || string(method) == "OPTIONS" || !methodOf(method).in(mGET|mPOST) && methodOf(method) != 0:
		return false
	case op.Kind != Other:
		return op.Kind.Read()
	}
	var segs [5][]byte
	n := split(bytes.TrimPrefix(op.told(), []byte("/")), &segs)
	switch first := string(segs[0]); {
	case n == 0, op.Ambiguous: // nobody knows what it is
		return true
	case first == "" || first == "_all" || first[0] != '_':
		return showsOf(segs[:n])
	default:
		return !silent[first] && !silentBelow[first+"/"+string(segs[1])]
	}
}

// showsOf is MayShow for an endpoint of an index, or of all of them.
func showsOf(segs [][]byte) bool {
	if len(segs) == 1 { // the index
		return false
	}
	end := string(segs[1])
	if len(segs) == 3 {
		last := string(segs[2])
		switch typed := end == "" || end[0] != '_' || end == "_doc"; {
		case end == "_search" && last == "point_in_time":
			return false
		case typed && ofType(last, mGET|mPOST):
			return !silent[last]
		}
	}
	return !silent[end]
}
