package embedded

// routes is the table of everything that the engine answers.
func routes() []route {
	rows := append(documentRoutes(), indexRoutes()...)
	return append(append(rows, searchRoutes()...), clusterRoutes()...)
}

func documentRoutes() []route {
	return []route{
		{"POST", "/{index}/_doc", (*call).indexDoc, writeParams("op_type", "pipeline", "require_alias", "require_data_stream")},
		{"PUT POST", "/{index}/_doc/{id}", (*call).indexDoc, writeParams("op_type", "pipeline", "require_alias", "require_data_stream")},
		{"PUT POST", "/{index}/_create/{id}", (*call).createDoc, writeParams("pipeline", "require_alias", "require_data_stream", "op_type")},
		{"DELETE", "/{index}/_doc/{id}", (*call).deleteDoc, writeParams()},
		{"POST", "/{index}/_update/{id}", (*call).updateDoc, writeParams("retry_on_conflict", "doc_as_upsert", "require_alias", "_source", "_source_includes", "_source_excludes")},
		{"GET HEAD", "/{index}/_doc/{id}", (*call).getDoc, readParams("stored_fields", "_source", "force_synthetic_source")},
		{"GET HEAD", "/{index}/_source/{id}", (*call).getSource, readParams("_source", "force_synthetic_source")},
		{"GET POST", "/_mget", (*call).mget, readParams("stored_fields", "_source", "force_synthetic_source")},
		{"GET POST", "/{index}/_mget", (*call).mget, readParams("stored_fields", "_source", "force_synthetic_source")},
		{"POST PUT", "/_bulk", (*call).bulk, bulkParams()},
		{"POST PUT", "/{index}/_bulk", (*call).bulk, bulkParams()},
	}
}

func indexRoutes() []route {
	change := []string{"wait_for_active_shards", "timeout", "master_timeout"}
	look := expandParams("local", "flat_settings", "include_defaults", "master_timeout", "features")
	return []route{
		{"PUT", "/{index}", (*call).createIndex, change},
		{"DELETE", "/{index}", (*call).deleteIndex, expandParams("timeout", "master_timeout")},
		{"GET HEAD", "/{index}", (*call).getIndex, look},
		{"GET", "/_mapping", (*call).getMapping, look},
		{"GET", "/{index}/_mapping", (*call).getMapping, look},
		{"PUT POST", "/{index}/_mapping", (*call).putMapping, expandParams("timeout", "master_timeout", "write_index_only")},
		{"GET", "/_settings", (*call).getSettings, look},
		{"GET", "/{index}/_settings", (*call).getSettings, look},
		{"PUT", "/{index}/_settings", (*call).putSettings, expandParams("timeout", "master_timeout", "preserve_existing", "flat_settings", "reopen")},
		{"GET", "/_alias", (*call).getAlias, look},
		{"GET", "/_aliases", (*call).getAlias, look},
		{"GET HEAD", "/_alias/{name}", (*call).getAlias, look},
		{"GET", "/{index}/_alias", (*call).getAlias, look},
		{"GET HEAD", "/{index}/_alias/{name}", (*call).getAlias, look},
		{"PUT POST", "/{index}/_alias/{name}", (*call).putAlias, change},
		{"DELETE", "/{index}/_alias/{name}", (*call).deleteAlias, change},
		{"POST", "/_aliases", (*call).updateAliases, change},
		{"GET POST", "/_refresh", (*call).refreshIndex, expandParams()},
		{"GET POST", "/{index}/_refresh", (*call).refreshIndex, expandParams()},
		{"PUT GET DELETE", "/_data_stream/{name}", refuse("data streams"), nil},
		{"PUT GET DELETE", "/_ingest/pipeline/{name}", refuse("ingest pipelines"), nil},
		{"PUT POST GET DELETE", "/_index_template/{name}", refuse("index templates"), nil},
		{"PUT POST GET DELETE", "/_component_template/{name}", refuse("index templates"), nil},
		{"PUT POST GET DELETE", "/_template/{name}", refuse("index templates"), nil},
	}
}

func searchRoutes() []route {
	find := expandParams("routing", "preference", "q", "df", "analyzer", "analyze_wildcard", "default_operator", "lenient", "ignore_throttled",
		"_source", "_source_includes", "_source_excludes", "from", "size", "sort", "version", "seq_no_primary_term", "track_total_hits", "track_scores",
		"rest_total_hits_as_int", "stored_fields", "timeout", "terminate_after", "request_cache", "typed_keys", "search_type", "scroll",
		"batched_reduce_size", "ccs_minimize_roundtrips", "pre_filter_shard_size", "max_concurrent_shard_requests", "allow_partial_search_results", "explain")
	count := expandParams("routing", "preference", "q", "df", "analyzer", "analyze_wildcard", "default_operator", "lenient", "ignore_throttled", "min_score", "terminate_after")
	write := expandParams("routing", "preference", "q", "df", "conflicts", "refresh", "timeout", "wait_for_active_shards", "wait_for_completion",
		"requests_per_second", "scroll", "scroll_size", "slices", "max_docs", "search_timeout", "search_type", "request_cache", "version", "sort", "terminate_after")
	return []route{
		{"GET POST", "/_search", (*call).search, find},
		{"GET POST", "/{index}/_search", (*call).search, find},
		{"GET POST", "/_count", (*call).count, count},
		{"GET POST", "/{index}/_count", (*call).count, count},
		{"POST", "/{index}/_delete_by_query", (*call).deleteByQuery, write},
		{"POST", "/{index}/_update_by_query", (*call).updateByQuery, write},
	}
}

func clusterRoutes() []route {
	health := []string{"level", "local", "timeout", "master_timeout", "wait_for_active_shards", "wait_for_events", "wait_for_no_initializing_shards",
		"wait_for_no_relocating_shards", "wait_for_nodes", "wait_for_status", "expand_wildcards"}
	cat := expandParams("v", "h", "s", "help", "bytes", "time", "local", "master_timeout", "health", "pri", "include_unloaded_segments")
	nodes := []string{"timeout", "flat_settings"}
	return []route{
		{"GET HEAD", "/", (*call).root, nil},
		{"GET", "/_cluster/health", (*call).health, health},
		{"GET", "/_cluster/health/{index}", (*call).health, health},
		{"GET", "/_cluster/state/metadata/{index}", (*call).clusterState, expandParams("local", "master_timeout", "flat_settings")},
		{"GET", "/_cat/indices", (*call).catIndices, cat},
		{"GET", "/_cat/indices/{index}", (*call).catIndices, cat},
		{"GET", "/_nodes", (*call).nodes, nodes},
		{"GET", "/_nodes/http", (*call).nodes, nodes},
		{"GET", "/_nodes/_all/http", (*call).nodes, nodes},
	}
}

func bulkParams() []string {
	return []string{"refresh", "routing", "timeout", "pipeline", "require_alias", "require_data_stream", "wait_for_active_shards", "_source",
		"_source_includes", "_source_excludes", "list_executed_pipelines", "include_source_on_error"}
}

func writeParams(more ...string) []string {
	return append(more, "routing", "refresh", "timeout", "version", "version_type", "if_seq_no", "if_primary_term",
		"wait_for_active_shards", "include_source_on_error")
}

func readParams(more ...string) []string {
	return append(more, "routing", "refresh", "realtime", "preference", "version", "version_type", "_source_includes", "_source_excludes")
}

func expandParams(more ...string) []string {
	return append(more, "ignore_unavailable", "allow_no_indices", "expand_wildcards")
}
