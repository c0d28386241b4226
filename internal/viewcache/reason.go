package viewcache

// Reason says why nothing is known of what a client has seen.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	Evicted         // for want of memory; or an answer to a write, or to a read after it, named no numbers
	Aged            // it was older than the sessions' age
	Restart         // the store started, or was resumed, less than the sessions' age ago: the client may have read before
	Index           // the index was changed, deleted or made anew, so its numbers may mean other documents; or requests went by unseen
	Blind           // the session is a blind writer in the index, and its reads are not kept there
)

// String returns the reason as it stands in the outcome header and in metrics.
func (r Reason) String() string {
	return [...]string{"", "evicted", "aged", "restart", "index", "blind"}[r]
}
