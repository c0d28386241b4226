// Package outcome is the account of a write in the words of the Optimist-Outcome field: how it ended, its base, why it wasn't
// guarded or merged, and the paths of other clients' values that it replaced.
//
// It decides nothing. Its words are tokens of a structured field and labels of metrics, so they are few and don't change.
package outcome

import (
	"slices"
	"strconv"

	"optimist/internal/uri"
)

// Kind is how a write ended, as the Optimist-Outcome field says it.
type Kind uint8

// The kinds.
const (
	Passed     Kind = iota // forwarded as it was, without a guard of ours
	Guarded                // written, or refused by the engine, under the base's guard, as it was sent
	Merged                 // the client's change was merged into a newer revision
	Combined               // likewise, in one write together with other clients' changes
	Retried                // an _update that the engine merges, tried again after conflicts
	Refused                // refused here, without a try
	NotSent                // no node could be reached: nothing was written
	Unknown                // it may or may not have been applied
	DeadLetter             // it was not written, and is kept for a replay
)

var kinds = [...]string{"passed", "guarded", "merged", "combined", "retried", "refused", "not_sent", "unknown", "dead-letter"}

// String is the token in the field and in metric labels.
func (k Kind) String() string { return kinds[k] }

// IsMerge reports whether the client's change was merged into a revision that the client hasn't seen, or in one write with others.
func (k Kind) IsMerge() bool { return k == Merged || k == Combined }

// Kinds are the tokens of all kinds.
func Kinds() []string { return slices.Clone(kinds[:]) }

// Outcome is what became of a write.
type Outcome struct {
	Kind      Kind
	Attempts  int      // writes sent, 0 where it was decided without one
	Base      BaseKind // what the change was counted from
	Ambiguous bool     // several revisions could have been the base
	Reason    string   // why it was not guarded, or not merged; a token
	Overwrote []string // JSON Pointers of somebody else's values that the write replaced
	More      int      // how many there were beyond Overwrote

	Untransformed bool // the rule has a transform, and it was not applied
}

// BaseKind is where a write's base came from.
type BaseKind uint8

// The kinds of bases, strongest first.
const (
	BaseNone     BaseKind = iota
	BaseExplicit          // if_seq_no or version, by the client
	BaseIfMatch           // If-Match
	BaseStamp             // the stamp in what was sent
	BaseRead              // what the session read
	BaseView              // what the session wrote
	BaseAbsent            // the session saw that there was no document
	BaseLost              // it was known once
	BaseFetched           // the current revision, by the rule base.unknown: fetch
)

var baseKinds = [...]string{"none", "explicit", "if_match", "stamp", "session", "view", "absent", "lost", "fetched"}

// String is the word in the field and in metric labels.
func (b BaseKind) String() string { return baseKinds[b] }

// maxOverwritten bounds the paths named in the field: a header that outgrows the client's limit would cost it the answer.
const maxOverwritten = 16

// Append appends the outcome as a structured field (RFC 8941): a token with parameters.
func (o *Outcome) Append(dst []byte) []byte {
	dst = append(dst, o.Kind.String()...)
	dst = append(dst, ";attempts="...)
	dst = strconv.AppendInt(dst, int64(o.Attempts), 10)
	dst = append(dst, ";base="...)
	dst = append(dst, o.Base.String()...)
	if o.Ambiguous {
		dst = append(dst, ";ambiguous"...)
	}
	if o.Reason != "" {
		dst = append(dst, ";reason="...)
		dst = append(dst, o.Reason...)
	}
	if o.Untransformed {
		dst = append(dst, ";untransformed"...)
	}
	if len(o.Overwrote) > 0 {
		dst = append(dst, `;overwrote="`...)
		for i, p := range o.Overwrote[:min(len(o.Overwrote), maxOverwritten)] {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = appendPath(dst, p)
		}
		if n := max(len(o.Overwrote)-maxOverwritten, 0) + o.More; n > 0 {
			dst = append(dst, " +"...)
			dst = strconv.AppendInt(dst, int64(n), 10)
		}
		dst = append(dst, '"')
	}
	return dst
}

// appendPath appends a JSON Pointer as part of a structured field's string: ASCII, everything else percent-encoded, as a URI
// fragment has it (RFC 6901 §6), spaces and quotes too.
func appendPath(dst []byte, path string) []byte {
	if path == "" {
		return append(dst, '/') // the whole document, written as §3.3 of the specification writes it
	}
	return uri.AppendEncoded(dst, path, inPath)
}

var inPath = uri.PlainBytes(func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '%' })

// Failure is an error with what is known of the write's outcome, for the header.
type Failure struct {
	Outcome Outcome
	Err     error
}

// Error is the cause's.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }
