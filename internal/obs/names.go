// Package obs is optimist's own reporting: the names of its metrics and log keys, the metrics, and the logger.
//
// It promises that labels are bounded: never ids, never sessions, and index names only up to a cap. Its callers decide what they
// report.
package obs

// Names of the metrics. They are part of what users build on: dashboards and alerts break when one changes.
const (
	MetricBuildInfo        = "optimist_build_info"
	MetricMode             = "optimist_mode"
	MetricReady            = "optimist_ready"
	MetricConnections      = "optimist_connections"
	MetricRequests         = "optimist_requests_total"
	MetricFailures         = "optimist_failures_total"
	MetricMemoryTaken      = "optimist_memory_taken_bytes"
	MetricMemoryLimit      = "optimist_memory_limit_bytes"
	MetricMemoryRefused    = "optimist_memory_refusals_total"
	MetricReceived         = "optimist_received_bytes_total"
	MetricSent             = "optimist_sent_bytes_total"
	MetricOutcomes         = "optimist_outcomes_total"
	MetricWriteDuration    = "optimist_write_duration_seconds"
	MetricBases            = "optimist_bases_total"
	MetricAmbiguous        = "optimist_ambiguous_bases_total"
	MetricLostBases        = "optimist_lost_bases_total"
	MetricConflicts        = "optimist_conflicts_total"
	MetricRetries          = "optimist_retries_total"
	MetricFetches          = "optimist_fetches_total"
	MetricBatched          = "optimist_batched_changes"
	MetricMerges           = "optimist_merges_total"
	MetricOverwritten      = "optimist_overwritten_paths_total"
	MetricUntransformed    = "optimist_untransformed_writes_total"
	MetricStrategiesUnused = "optimist_strategies_unused_total"
	MetricKeys             = "optimist_idempotency_keys_total"
	MetricUndoNoted        = "optimist_undo_writes_noted_total"
	MetricUndoEnded        = "optimist_undo_journals_total"
	MetricUndone           = "optimist_undo_documents_total"
	MetricDoubtsResolved   = "optimist_doubtful_writes_resolved_total"
	MetricUnstamped        = "optimist_unstamped_reads_total"
	MetricObserved         = "optimist_observed_writes_total"
	MetricLostUpdates      = "optimist_lost_updates_total"
	MetricEqualMoves       = "optimist_equal_moves_total"
	MetricBlind            = "optimist_blind_writes_total"
	MetricUnguardable      = "optimist_unguardable_indices_total"
	MetricSessionLookups   = "optimist_session_lookups_total"
	MetricSessionEvicted   = "optimist_session_evictions_total"
	MetricSessionBytes     = "optimist_session_bytes"
	MetricSessionEntries   = "optimist_session_entries"
	MetricUnlisted         = "optimist_unlisted_tenant_fields_total"
	MetricUpstreamUp       = "optimist_upstream_up"
	MetricUpstreamAuth     = "optimist_upstream_auth_refused"
	MetricUpstreamConns    = "optimist_upstream_connections"
	MetricUpstreamDials    = "optimist_upstream_connect_errors_total"
	MetricUpstreamEject    = "optimist_upstream_ejections_total"
	MetricUpstreamWaits    = "optimist_upstream_waits_total"
	MetricUpstreamResent   = "optimist_upstream_resent_total"
	MetricWriteLimit       = "optimist_write_limit"
	MetricWritesOut        = "optimist_writes_out"
	MetricWritesQueued     = "optimist_writes_queued"
	MetricWritesRefused    = "optimist_writes_refused_total"
	MetricLocksHeld        = "optimist_locks_held"
	MetricLocksWaiting     = "optimist_locks_waiting"
	MetricLockRequests     = "optimist_lock_requests_total"
	MetricLockContended    = "optimist_lock_contended_total"
	MetricLockWait         = "optimist_lock_wait_seconds"
	MetricLeasesLapsed     = "optimist_leases_lapsed_total"
	MetricLettersKept      = "optimist_dead_letters_total"
	MetricLetterReplays    = "optimist_dead_letter_replays_total"
	MetricLettersInFolder  = "optimist_dead_letters_in_folder"
	MetricLetterBytes      = "optimist_dead_letters_in_folder_bytes"
	MetricReloads          = "optimist_config_reloads_total"
	MetricReloadOK         = "optimist_config_last_reload_successful"
	MetricReloadTimestamp  = "optimist_config_last_reload_success_timestamp_seconds"
)

// Labels of the metrics.
const (
	LabelOp      = "op"      // an api.Kind, by name
	LabelCode    = "code"    // 2xx, 3xx, 4xx, 5xx, or none where no answer was given
	LabelOutcome = "outcome" // as in the Optimist-Outcome header
	LabelReason  = "reason"  // why; empty where there is nothing to say
	LabelKind    = "kind"    // where a base came from
	LabelRule    = "rule"    // a rule's name
	LabelIndex   = "index"   // an index's name, capped: see IndexLabels
	LabelWould   = "would"   // what guarding would have done
	LabelResult  = "result"  // how it ended; each metric has its own words
	LabelPlace   = "place"   // of a dead letter: store, folder, or lost if it could not be kept
	LabelNode    = "node"    // a node of the engine, as configured
	LabelType    = "type"    // of an error, as in the answer's error.type
	LabelState   = "state"   // of a connection: open, idle
	LabelMode    = "mode"    // guard, observe, off
	LabelClass   = "class"   // of who waits for a lock or a write: foreground, background; for memory: credentials, anonymous
	LabelTaken   = "taken"   // whether somebody else got the lock by it
)

// Keys of log lines.
const (
	KeyError   = "error"
	KeyAddr    = "addr"
	KeyNode    = "node"
	KeyIndex   = "index"
	KeyMode    = "mode"
	KeyMethod  = "method"
	KeyPath    = "path" // without the query, which may hold secrets
	KeyOp      = "op"
	KeyStatus  = "status"
	KeyOutcome = "outcome"
	KeyReason  = "reason"
	KeyBytes   = "bytes"
	KeyClient  = "client"
	KeyFile    = "file"
	KeySignal  = "signal"
	KeyVersion = "version"
	KeyRules   = "rules"
	KeyCount   = "count"
	KeyField   = "field" // of a request's head
	KeyAdd     = "add"   // a line for the configuration
	KeyLock    = "lock"  // its path
	KeyOwner   = "owner"
	KeyToken   = "token" // of a lease that has ended
	KeyNote    = "note"
)
