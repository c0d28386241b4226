package config

import "optimist/internal/unit"

// Rule is one block of `rules`: which requests it takes, and what happens to them.
type Rule struct {
	// Name stands for the rule in logs, metrics and `check`. Required, unique: letters, digits, dot, dash, underscore.
	Name string `json:"name"`

	// Match says which requests the rule takes.
	Match Match `json:"match"`

	// Mode is guard, observe or off for this rule's requests. Default: the mode of the whole. It can only do less than
	// that: `mode: off` at the top switches every rule off.
	Mode Mode `json:"mode"`

	// Base says from what a client's change is counted.
	Base Base `json:"base"`

	// Merge says what happens where a client and somebody else changed the same value.
	Merge Merge `json:"merge"`

	// Transform is what is done to every document that the rule's writes leave, whether they conflict or not: step by step, at every
	// attempt anew, on the merged document. Default: nothing. It counts for index, create, PATCH, and `_update` with doc; see
	// docs/rules.md for what it can't be done to. What a session has seen of a document stays what it sent.
	Transform []Step `json:"transform"`

	// Pipeline says what happens in indices whose writes go through an ingest pipeline: guard (default: writes are guarded, a
	// conflict is the client's answer) or rerun (conflicts merge, and the pipeline runs again on the merged document).
	// Danger: with rerun a pipeline that isn't idempotent counts or appends twice.
	Pipeline Pipeline `json:"pipeline"`

	// OnConflict is merge (default) or fail: a stale write is refused with the engine's own 409.
	OnConflict OnConflict `json:"on_conflict"`

	// OnMissing is for documents that were deleted after the client read them: fail (default: 409) or recreate (what was
	// sent is written).
	OnMissing OnMissing `json:"on_missing"`

	// OnDeleteConflict is for deletes of documents that changed after the client read them: sent (the document is deleted,
	// and the outcome names `/` as overwritten) or fail (409). Default: fail where on_conflict is fail or merge.default isn't
	// sent, else sent.
	OnDeleteConflict OnDeleteConflict `json:"on_delete_conflict"`

	// Retry says how often and how long a conflicting write is tried.
	Retry Retry `json:"retry"`

	// RetryOnConflict is the `retry_on_conflict` that is added to `_update` requests which bring neither it nor a guard.
	// Default 3. 0 adds nothing.
	RetryOnConflict int `json:"retry_on_conflict" min:"0" max:"1000"`

	// Priority is foreground (default) or background: who goes first where many changes wait for one document. A request's own
	// `Optimist-Priority` header wins. Background is never starved.
	Priority Priority `json:"priority"`

	key string // where the rule stands: see Config.RuleKey
}

// Match says which requests a rule takes.
type Match struct {
	// Index are names or patterns (`orders-*`). `*` stands for any number of characters, but a name with a leading dot is only
	// taken by a pattern that has one, too. A pattern with a leading `-` takes out again: [`*`, `-logs-*`]. Default: every
	// index but those with a leading dot, data streams, `logs-*`, `metrics-*`, `traces-*`, and optimist's own (`optimist-*`).
	Index []string `json:"index"`

	// Ops are index, create, update, patch, delete; single or in a bulk. Default: all.
	Ops []Op `json:"ops"`

	// Headers are request headers that must be there, by name, each with a value or pattern (`*` as in index): `{X-Tenant: "acme-*"}`.
	// Of a header that is sent more than once, one value must fit. Default: none. For more values of one header write more rules.
	Headers HeaderPatterns `json:"headers"`

	// Users are names or patterns, of which one must fit the request's user: whom it is to run as, by `es-security-runas-user`, else
	// `opendistro_security_impersonate_as`, else `sg_impersonate_as`; else the name in its Basic credentials; else whom a gateway says that
	// it is, by `x-proxy-user`, else `x-forwarded-user`. API keys, tokens and certificates name no user. Default: anybody. Danger: the
	// name is as the client says it; it chooses a rule, and protects nothing that the engine doesn't.
	Users []string `json:"users"`

	byDefault bool // the file names no index
}

// ByDefault reports whether the rule names no index of its own, so that Index is the default. Such a rule leaves data streams
// alone, which only the engine can tell.
func (m *Match) ByDefault() bool { return m.byDefault }

// Base says from what a client's change is counted, and what happens where that isn't known.
type Base struct {
	// From says where bases come from, strongest first: if_match (the client's If-Match header, and the ETag on document
	// reads), stamp (the field that base.stamp names), session (what this client has read through this proxy). Default if_match and
	// session, and stamp between them where there is one.
	From []BaseSource `json:"from"`

	// Stamp is the name of a field, such as `_rev`, at the top of documents: optimist puts the revision into it in what it serves
	// whole, and takes it out of what is written. An application that writes back the whole document so names its base without
	// knowing, through any proxy. Default none. Not for rules that ask for headers or users: a copy may come back from a client that
	// they don't take. Danger: what goes around optimist doesn't have the field taken out.
	Stamp string `json:"stamp"`

	// Reads are the requests whose answers are remembered as bases: get (`_doc`, `_source`), mget, search. Default [get,
	// mget]. With search, the revisions of the hits are asked for upstream, which costs the engine a little for each hit;
	// hits without their whole `_source` are no bases.
	Reads []Read `json:"reads"`

	// Explicit is for writes that bring their own if_seq_no or version: pass (default: their 409 is their answer) or merge.
	Explicit Explicit `json:"explicit"`

	// Unknown is for writes without any base: pass (default: as it is, unguarded), fetch (the current revision is the base: costs
	// a read; guards against writes in between, not against what the client never saw), or reject (428).
	Unknown Unknown `json:"unknown"`

	// Lost is for writes whose base was there and is gone (evicted, too old, or read before the proxy's start): pass
	// (default: unguarded; it is counted, and the outcome says so) or reject (409: the client reads again).
	Lost Lost `json:"lost"`

	// Ambiguous is for writes for which several reads of the session could be the base: guess (default: the one closest to what was
	// sent, and the outcome says `ambiguous`) or fail (409).
	Ambiguous Ambiguous `json:"ambiguous"`
}

// Merge says what happens where a client and somebody else changed the same value. Changes to different values never meet:
// both are kept.
type Merge struct {
	// Default is sent (the client's value wins, and the outcome names what was overwritten), current (the stored one wins),
	// or fail (409 naming the paths). Default sent.
	Default MergeDefault `json:"default"`

	// Paths are strategies for single paths. Keys are JSON Pointers (`/stock`, `/lines/*/price`; `*` is every element or
	// key), values sent, current, fail, sum (both deltas count), max, min, union, append, or {by_key: FIELD} for lists of
	// objects, merged element by element. Where two paths fit, the more exact one counts.
	Paths MergePaths `json:"paths"`
}

// HeaderPatterns are the entries of match.headers, in the file's order.
type HeaderPatterns []HeaderPattern

// HeaderPattern is one entry of match.headers.
type HeaderPattern struct {
	Name    string // of the header; upper and lower case are the same
	Pattern string // of its value
}

// MergePaths are the entries of merge.paths, in the file's order.
type MergePaths []MergePath

// MergePath is one entry of merge.paths.
type MergePath struct {
	Path     string   // JSON Pointer, RFC 6901; `*` is every element or key
	Strategy Strategy // StrategyByKey has Key
	Key      string   // the field of the list's objects that tells them apart
}

// Retry says how often and how long a conflicting write is tried. Whichever limit comes first ends it, and the conflict is
// the client's answer; so does the client's own `timeout`, and the client that leaves.
type Retry struct {
	// MaxAttempts counts the writes that are sent, the first included. Default 20. 1 never tries again.
	MaxAttempts int `json:"max_attempts" min:"1" max:"10000"`

	// MaxElapsed is the time from a write's first try after which nothing new is tried. What it waits for its turn doesn't count. Default
	// 10s.
	MaxElapsed unit.Duration `json:"max_elapsed" min:"1nanos"`

	// Backoff is the pause between two attempts.
	Backoff Backoff `json:"backoff"`
}

// Backoff is the pause between two attempts: a random time between nothing and a bound that starts at BaseInterval, doubles with each
// attempt, and stops at MaxInterval (full jitter).
type Backoff struct {
	// BaseInterval is the first bound. Default 2ms.
	BaseInterval unit.Duration `json:"base_interval" min:"1nanos"`

	// MaxInterval is the largest bound. Default 200ms.
	MaxInterval unit.Duration `json:"max_interval"`
}
