package outcome

// Reasons why a write is passed, or guarded and never merged. They are tokens of the outcome and labels of a metric.
const (
	ReasonSigned     = "signed"          // the request is signed over its query or body
	ReasonAuth       = "connection_auth" // the authentication belongs to the connection (Negotiate, NTLM)
	ReasonFragment   = "fragment"        // the request's target has a number sign, behind which engines heed no parameter
	ReasonFormat     = "format"          // the body isn't JSON, or not one object
	ReasonTooLarge   = "too_large"       // the body is over the limit up to which writes are held, or a bulk says too much of all its items
	ReasonDataStream = "data_stream"     // the index backs a data stream, and no rule names it
	ReasonNumbers    = "numbers"         // the base's body isn't known: guarded, not merged
	ReasonUnclear    = "unclear"         // the client may have been shown another document since: guarded, not merged
	ReasonBlind      = "blind"           // the session writes what it hasn't read
	ReasonExplicit   = "explicit"        // the client brought its own guard
	ReasonBulk       = "bulk"            // a rule says that the items of a bulk go as they are
	ReasonByQuery    = "by_query"        // nor are the documents of an update or delete by query
	ReasonUnasked    = "unasked"         // whether the client sees documents whole, or the engine has types, couldn't be asked

	ReasonFound = "found" // a repeat, whose first try has left its mark in the document

	ReasonLocked      = "locked"      // somebody else holds a lock that protects the document
	ReasonStaleToken  = "stale_token" // the lease that the write was made under has ended
	ReasonLockStore   = "lock_store"  // who holds the locks couldn't be asked
	ReasonUnguardable = "unguardable" // locks are enforced, and the write can't be guarded

	ReasonSeqNo    = "no_seq_no" // the index has no sequence numbers: nothing can be guarded
	ReasonSource   = "source"    // _source isn't kept whole: guarded, not merged
	ReasonPipeline = "pipeline"  // an ingest pipeline changes what is written: guarded, not merged; or takes it elsewhere: passed
	ReasonFiltered = "filtered"  // the client's view may be filtered: guarded, not merged
	ReasonMetadata = "metadata"  // the client may not ask what the index is: guarded, not merged
)

// Reasons why a write can't be placed, and is kept as a dead letter. They are tokens of the outcome and labels of a metric, too.
const (
	UnplacedConflict    = "conflict"    // others have changed the document, and the change can't be merged, or conflicts again and again
	UnplacedBusy        = "busy"        // the engine has too much to do (429)
	UnplacedRefused     = "refused"     // the engine refuses the document (400), or the index takes no writes
	UnplacedUnreachable = "unreachable" // no node can be reached, or the engine couldn't be asked what had to be known
	UnplacedTimeout     = "timeout"     // the client's own timeout ended before the write's turn came
)

// Unplaced are all these reasons.
func Unplaced() []string {
	return []string{UnplacedConflict, UnplacedRefused, UnplacedBusy, UnplacedUnreachable, UnplacedTimeout}
}
