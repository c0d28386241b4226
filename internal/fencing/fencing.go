// Package fencing has the words that writes and locks share. It reads the lock tokens that a write carries.
//
// It doesn't know whether a token belongs to a lease, or to which.
package fencing

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"optimist/internal/uri"
	"optimist/internal/wire"
)

// A Question asks locks whether a write of one document may go.
type Question struct {
	Indices []string // the names of its index, each once: its own, the one that the client used, its aliases, and those of its data stream
	ID      string   // of the document, decoded; empty: the engine makes it
	Paths   []string // where in the tree of its index the document is, and where it will be; decoded
	Global  string   // a global lock that protects it; empty: none does
	Tokens  Tokens   // of the leases under which the write is made
	// NoIndex says that there was no such index when the engine was asked. The write may make it. Then only the index's locks are looked at:
	// clients can make up any number of names, and a gate is kept in the store for good.
	NoIndex bool
	// Dry says that the write isn't made. Then the locks' documents stay as they are, and this proxy's clock judges whether leases have ended.
	Dry bool
}

// Where a write carries its tokens. All of them are taken out before the write goes to the engine.
const (
	Field  = "optimist-lock-token" // of the request, also for all items of a bulk; in lower case, for wire.EqualFold
	Param  = "lock_token"          // of the request's query, likewise
	Member = "lock_token"          // of an item's action in a bulk, for that item: a number, or a string as in Field
)

// mostTokens is how many tokens a write may carry: one for each document of a bulk of some size.
const mostTokens = 1000

// maxToken is below 2^53, so that a token is the same number for clients that read all numbers as floats.
const maxToken = 1<<53 - 1

// ErrBad reports tokens that can't be any: the client gets a 400, and nothing is sent.
var ErrBad = errors.New("a lock's token is a number from 1 to 9007199254740991, as it was answered to the request for the lock; " +
	"a write may carry up to 1000, separated by commas")

// Tokens are those of one write, each once, from the smallest to the largest: so a search for one, and the comparison of two of them, cost
// little, however many a client sends. The zero value are none. They aren't changed: several writes may have the same.
type Tokens []int64

// Has reports whether a token is among them.
func (t Tokens) Has(token int64) bool {
	_, found := slices.BinarySearch(t, token)
	return found
}

// Equal reports whether both are the same tokens.
func (t Tokens) Equal(o Tokens) bool { return slices.Equal(t, o) }

// Bytes is how many bytes they take.
func (t Tokens) Bytes() int64 { return int64(cap(t)) * 8 }

// With is t and the tokens in a text. The error is ErrBad; a text of blanks has no tokens, and is one.
func (t Tokens) With(text []byte) (Tokens, error) {
	out := slices.Clone(t)
	for part := range bytes.SplitSeq(text, []byte(",")) {
		token, err := strconv.ParseInt(string(bytes.Trim(part, " \t")), 10, 64)
		if err != nil || token < 1 || token > maxToken {
			return nil, ErrBad
		}
		if out = append(out, token); len(out) > 2*mostTokens { // mostly the same ones
			if out = inOrder(out); len(out) > mostTokens {
				return nil, ErrBad
			}
		}
	}
	if out = inOrder(out); len(out) > mostTokens {
		return nil, ErrBad
	}
	return out, nil
}

// inOrder is t with each token once.
func inOrder(t Tokens) Tokens {
	slices.Sort(t)
	return slices.Compact(t)
}

// Read gives the tokens in a request's fields and in its query. The error is ErrBad. A request without any costs no memory.
func Read(fields []wire.Field, query []byte) (t Tokens, err error) {
	for i := range fields {
		if !wire.EqualFold(fields[i].Name, Field) {
			continue
		}
		if t, err = t.With(fields[i].Value); err != nil {
			return nil, err
		}
	}
	raw, given := uri.Param(query, Param)
	if !given {
		return t, nil
	}
	value, err := uri.DecodeValue(nil, raw)
	if err != nil {
		return nil, ErrBad
	}
	return t.With(value)
}
