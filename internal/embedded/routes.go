package embedded

// routes is the table of everything that the engine answers.
func routes() []route {
	return []route{
		{"GET HEAD", "/", (*call).root, nil},
		{"PUT", "/{index}", (*call).createIndex, []string{"wait_for_active_shards", "timeout", "master_timeout"}},
		{"DELETE", "/{index}", (*call).deleteIndex, append(expandParams(), "timeout", "master_timeout")},
		{"GET HEAD", "/{index}", (*call).getIndex, append(expandParams(), "local", "flat_settings", "include_defaults", "master_timeout", "features")},

		{"POST", "/{index}/_doc", (*call).indexDoc, writeParams("op_type", "pipeline", "require_alias", "require_data_stream")},
		{"PUT POST", "/{index}/_doc/{id}", (*call).indexDoc, writeParams("op_type", "pipeline", "require_alias", "require_data_stream")},
		{"PUT POST", "/{index}/_create/{id}", (*call).createDoc, writeParams("pipeline", "require_alias", "require_data_stream", "op_type")},
		{"DELETE", "/{index}/_doc/{id}", (*call).deleteDoc, writeParams()},
		{"GET HEAD", "/{index}/_doc/{id}", (*call).getDoc, readParams("stored_fields", "_source", "force_synthetic_source")},
		{"GET HEAD", "/{index}/_source/{id}", (*call).getSource, readParams("_source", "force_synthetic_source")},
	}
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
