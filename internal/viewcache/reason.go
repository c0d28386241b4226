package viewcache

// Reason says why nothing is known of what a client has seen.
type Reason uint8

// The reasons.
const (
	NoReason  Reason = iota
	Evicted          // there was no memory left for it; or the answer to a later write or read had no numbers
	Aged             // it was older than the sessions' age
	Restart          // the store started, or was resumed, less than the sessions' age ago: the client may have read before
	Index            // the index was changed, deleted or created again, so its numbers may mean other documents; or requests bypassed optimist
	Blind            // the session is a blind writer in the index, and its reads are not kept there
	Unwatched        // the named session was shown documents of the index by answers that nobody here has read
)

var reasonNames = [...]string{"", "evicted", "aged", "restart", "index", "blind", "unwatched"}

// String returns the reason as it stands in the outcome header and in metrics.
func (r Reason) String() string { return reasonNames[r] }

// Reasons are the names of all reasons.
func Reasons() []string { return reasonNames[1:] }
