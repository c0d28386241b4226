package config

import "optimist/internal/unit"

// Rule is one block of `rules`: which requests it takes, and how optimist handles them.
type Rule struct {
	// Name is the rule's name in logs, metrics and `check`. Required, unique: letters, digits, dot, dash, underscore.
	Name string `json:"name"`

	// Match is which requests the rule takes.
	Match Match `json:"match"`

	// Mode is `guard`, `observe` or `off` for this rule's requests. Default: the mode of the file. It can only do less than
	// that: `mode: off` at the top switches every rule off.
	Mode Mode `json:"mode"`

	// Base is how optimist finds the revision from which a client made its change.
	Base Base `json:"base"`

	// Merge is what happens if a client and another client changed the same value.
	Merge Merge `json:"merge"`

	// Transform is a list of steps that optimist applies to every document which the rule's writes store: at every attempt
	// anew, on the merged document. Steps run for index, create, PATCH, and `_update` with `doc`; docs/rules.md has the
	// exceptions.
	Transform []Step `json:"transform"`

	// Pipeline is for indices with an ingest pipeline: `guard` (default: writes are guarded, and the client gets a 409 on
	// a conflict) or `rerun` (conflicts merge, and the pipeline runs again on the merged document). Danger: with `rerun` a
	// pipeline that isn't idempotent counts or appends twice.
	Pipeline Pipeline `json:"pipeline"`

	// OnConflict is `merge` (default) or `fail`: a stale write gets the engine's own 409.
	OnConflict OnConflict `json:"on_conflict"`

	// OnMissing is for documents that were deleted after the client read them: `fail` (default: 409) or `recreate` (the body
	// is written).
	OnMissing OnMissing `json:"on_missing"`

	// OnDeleteConflict is for deletes of documents that changed after the client read them: `sent` (the document is deleted,
	// and the outcome names `/` as overwritten) or `fail` (409). Default: `fail` if `on_conflict` is `fail` or
	// `merge.default` isn't `sent`, else `sent`.
	OnDeleteConflict OnDeleteConflict `json:"on_delete_conflict"`

	// Update is for an `_update` with `doc`, if the client has read the document: `merge` (default: optimist merges the
	// paths in `doc`, like a whole document) or `engine` (a list or a number in `doc` replaces other clients' later ones).
	Update Update `json:"update"`

	// Bulk is for the rule's items of a `_bulk`: `guard` (default: optimist guards and merges an item like a single
	// request), `pass` (all go as they are), or `refuse` (they get an error; the items of other rules are written).
	Bulk Bulk `json:"bulk"`

	// Rerun is whether an `_update_by_query` may run again over documents that it has changed. optimist then sends it
	// again as long as documents conflict, as it does with a `_delete_by_query`.
	Rerun bool `json:"rerun"`

	// WriteID is the name of a field at the top of documents, such as `_writes`, in which every write of a whole document,
	// of a part that optimist merges, and every PATCH leaves a mark. If the answer is lost, the mark says whether the
	// write was applied. Without such a field, a write that may do harm twice then gets a 504. Clients see the field;
	// optimist ignores what they put there. It holds the last 16 marks, about 30 bytes each. Map it as `{"type":
	// "keyword", "index": false, "doc_values": false}`; an index with `dynamic: strict` must have it in its mapping
	// (docs/outcomes.md).
	WriteID string `json:"write_id"`

	// Retry is how often and how long optimist tries a conflicting write.
	Retry Retry `json:"retry"`

	// RetryOnConflict is the `retry_on_conflict` that optimist adds to an `_update` that the engine merges, unless it has
	// a script, a guard, or this parameter. With 0, optimist adds nothing, and sends no `_update` again that the engine
	// merges.
	RetryOnConflict int `json:"retry_on_conflict" min:"0" max:"1000"`

	// Rejected is for writes that the engine rejects with 429: `retry` (default: optimist waits and sends the write again,
	// within the limits of `retry`) or `pass` (the client gets the 429 at once, as it always does if a disk is full).
	Rejected Rejected `json:"rejected"`

	// OnExhausted is for writes that can't be placed: `fail` (default: the client gets the error) or `dead_letter`
	// (optimist stores the write, and the client gets a 202 with the dead letter's id: docs/dead-letters.md). A write
	// can't be placed if it still conflicts after all attempts, or if the engine refuses what is in it, is too busy, or
	// can't be reached. Danger: a client that takes a 202 for success doesn't notice that nothing was written.
	OnExhausted OnExhausted `json:"on_exhausted"`

	// Locks are `off` (default: locks exclude only clients that ask for locks) or `enforce`: a write to a document that
	// another client has locked gets a 423, and a write with the token of an ended lease a 409. The holder sends its token
	// in the header `Optimist-Lock-Token`. A document is protected by its own lock, and by those that `lock_path` and
	// `lock_global` name. optimist then guards every write (`base.unknown` is `fetch` instead of `pass`), and refuses what
	// can't be guarded. The rule must take all writes to its indices, and all proxies need it (docs/locks.md).
	Locks Enforcement `json:"locks"`

	// LockPath is where a document is in the tree of its index, `/{index}/_lock/tree/{path}`: a JSON Pointer (`/path`) to
	// the field with the document's path, or `id`. A lock of the path, or of one above it, then protects the document. A
	// write that moves the document needs the locks of both paths. Only with `locks: enforce`.
	LockPath string `json:"lock_path"`

	// LockGlobal is the name of a global lock, `/_lock/global/{name}`, that protects all documents of the rule. Only with
	// `locks: enforce`.
	LockGlobal string `json:"lock_global"`

	// Priority is `foreground` (default) or `background`: the foreground goes first if many changes wait for one document. A
	// request's own `Optimist-Priority` header wins. The background never starves.
	Priority Priority `json:"priority"`

	key string // where the rule stands: see Config.RuleKey
}

// Match is which requests a rule takes. All keys must fit.
type Match struct {
	// Index are names or patterns: `*` stands for any number of characters, and a leading `-` excludes: [`orders-*`,
	// `-orders-test`]. Only a pattern with a leading dot fits a name with a leading dot. Default: every index except those
	// with a leading dot, data streams, `logs-*`, `metrics-*`, `traces-*`, and optimist's own (`optimist-*`).
	Index []string `json:"index"`

	// Ops are the operations: `index`, `create`, `update`, `patch`, `delete`; as single requests or in a bulk.
	Ops []Op `json:"ops"`

	// Headers are request headers that the request must have, by name, each with a value or a pattern (`*` as in index):
	// `{X-Tenant: "acme-*"}`. If a request has a header more than once, one value must fit.
	Headers HeaderPatterns `json:"headers"`

	// Users are names or patterns, one of which must fit the request's user: the first of `es-security-runas-user`,
	// `opendistro_security_impersonate_as`, `sg_impersonate_as`, the name in its Basic credentials, `x-proxy-user` and
	// `x-forwarded-user`. API keys, tokens and certificates name no user. Default: anybody. Danger: the client itself
	// sends this name, so it protects nothing that the engine doesn't protect.
	Users []string `json:"users"`

	byDefault bool // the file names no index
}

// ByDefault reports whether the rule names no index of its own, so that Index is the default. Such a rule leaves data streams
// alone, which only the engine can tell.
func (m *Match) ByDefault() bool { return m.byDefault }

// Base is how optimist finds the revision from which a client made its change, and what happens if it can't.
type Base struct {
	// From is where bases come from, strongest first: `if_match` (the client's If-Match header, and the ETag on document
	// reads), `stamp` (the field that `base.stamp` names), `session` (the client's reads through this optimist). If there is
	// a stamp, it stands between the two of the default.
	From []BaseSource `json:"from"`

	// Stamp is the name of a field at the top of documents, such as `_rev`, into which optimist puts the revision of every
	// whole document that it serves. So an application that writes back the whole document names its base without knowing,
	// through any proxy (docs/stamps.md). optimist removes the field from every write. Not for rules that ask for headers
	// or users. Danger: if a write goes around optimist, the field is stored.
	Stamp string `json:"stamp"`

	// Reads are the requests whose answers optimist remembers as bases: `get` (`_doc`, `_source`), `mget`, and `search`
	// (of all clients) or `search_by_writers` (of those who name their session, write in the index, or are new there).
	// Hits without their whole `_source` are no bases.
	Reads []Read `json:"reads"`

	// Explicit is for writes with their own `if_seq_no` or `version`: `pass` (default: the client gets its 409) or `merge`.
	Explicit Explicit `json:"explicit"`

	// Unknown is for writes without any base: `pass` (default: forwarded as they are, unguarded), `fetch` (the current
	// revision is the base: costs a read, and doesn't save changes that the client never saw), or `reject` (428).
	Unknown Unknown `json:"unknown"`

	// Lost is for writes whose base was known once and isn't any more (evicted, too old, or read before optimist's start),
	// or was shown to a named session by an answer that optimist doesn't read: `pass` (default: the outcome says so, and
	// `unknown` decides) or `reject` (409: the client reads again; a PUT of a document that doesn't exist may still go
	// through, as a create).
	Lost Lost `json:"lost"`

	// Ambiguous is for writes for which several reads of the session could be the base: `guess` (default: the likeliest
	// read, and the outcome says `ambiguous`) or `fail` (409).
	Ambiguous Ambiguous `json:"ambiguous"`
}

// Merge is what happens if a client and another client changed the same value. If they changed different values, both
// changes are kept (docs/merge.md).
type Merge struct {
	// Default is `sent` (the client's value wins, and the outcome names the path), `current` (the stored value wins), or
	// `fail` (409 naming the paths, also if both clients made the same change).
	Default MergeDefault `json:"default"`

	// Paths are strategies for single paths, by their JSON Pointers (`/stock`, `/lines/*/price`; `*` is every element or
	// key): `sent`, `current`, `fail`, `sum` (both differences count), `max`, `min`, `union`, `append`, or `{by_key:
	// FIELD}` for lists of objects, merged element by element. If two paths fit, the more exact one counts.
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

// Retry is how often and how long optimist tries a conflicting write. The first limit ends the tries, and the client gets
// the conflict. The client's own `timeout`, and the end of its connection, end them, too.
type Retry struct {
	// MaxAttempts is how many writes are sent at most, the first included. 1 never tries again.
	MaxAttempts int `json:"max_attempts" min:"1" max:"10000"`

	// MaxElapsed is how long after a write's first try optimist begins new tries. Waiting for its turn doesn't count.
	MaxElapsed unit.Duration `json:"max_elapsed" min:"1nanos"`

	// Backoff is the pause between two attempts.
	Backoff Backoff `json:"backoff"`
}

// Backoff is the pause between two attempts: a random time between 0 and a bound (full jitter). The bound starts at
// BaseInterval, doubles with each attempt, and stops at MaxInterval.
type Backoff struct {
	// BaseInterval is the first bound.
	BaseInterval unit.Duration `json:"base_interval" min:"1nanos"`

	// MaxInterval is the largest bound.
	MaxInterval unit.Duration `json:"max_interval"`
}
