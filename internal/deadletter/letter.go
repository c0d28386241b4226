// Package deadletter keeps writes that couldn't be placed, until an operator replays or deletes them: in an index of the engine,
// in a Kafka topic, or in a folder of files.
//
// A letter that Keep has named outlives the process. The package makes no write: the caller hands in the function that replays a
// letter. If nobody knows the outcome of a replay, the letter becomes doubtful, and is replayed again only if the operator says
// so.
package deadletter

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"optimist/internal/es"
)

// format is the number of the letters' format. A program that is too old for a letter, or for a store, refuses it.
const format = 1

// Letter is one write that was not made. It is a value: nobody changes one that others have.
type Letter struct {
	Format int       `json:"format"`
	ID     string    `json:"id"` // grows with the time
	At     time.Time `json:"at"`

	Rule     string `json:"rule"`
	Reason   string `json:"reason"`           // a token: conflict, busy, refused, unreachable, timeout
	Detail   string `json:"detail,omitempty"` // what was said last
	Status   int    `json:"status,omitempty"` // the answer that the client would have got; 0: an error of optimist's
	Attempts int    `json:"attempts"`

	Index    string `json:"index"`
	Document string `json:"document,omitempty"` // its id; none of a new document
	Routing  string `json:"routing,omitempty"`
	Client   string `json:"client,omitempty"` // stands for the session that sent it
	// Checked says that the engine has let its client write there: it has answered a try with a conflict, or refused the document.
	Checked bool `json:"checked"`

	Request Request `json:"request"`
	Base    *Base   `json:"base,omitempty"` // nil: nothing is known of what the client had seen

	State   State   `json:"state"`
	Replays int     `json:"replays,omitempty"`
	Last    *Replay `json:"last_replay,omitempty"`
	// Arriving says that a process is about to move the letter to the store from its folder. Until that is done, the store's is doubtful.
	Arriving bool `json:"arriving,omitempty"`
}

// Request is the client's, without credentials.
type Request struct {
	Method string      `json:"method"`
	Target string      `json:"target"`
	Fields [][2]string `json:"fields,omitempty"`
	Body   Bytes       `json:"body,omitzero"` // nil in a list
}

// Base is what the client had seen when it made the write.
type Base struct {
	Kind        string `json:"kind"` // read, view, absent or given
	SeqNo       int64  `json:"seq_no"`
	PrimaryTerm int64  `json:"primary_term"`
	Version     int64  `json:"version,omitempty"`
	View        Bytes  `json:"view,omitempty"`   // what the client saw
	Stored      Bytes  `json:"stored,omitempty"` // what the engine held there, if that is something else
}

// State is what is known of a letter's replays.
type State string

// The states.
const (
	Waiting   State = "waiting"   // it can be replayed
	Replaying State = "replaying" // somebody replays it
	Doubtful  State = "doubtful"  // it may have been written: it is replayed again only if somebody says so
	Damaged   State = "damaged"   // it can't be read; Detail says why. It can be deleted
)

// Replay is the last one.
type Replay struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Bytes are a body.
type Bytes = es.Bytes

// ErrLetter reports bytes that are no letter, or one of a format that this program doesn't know.
var ErrLetter = errors.New("this is no dead letter that this program can read")

// decode reads a letter as it was written.
func decode(text []byte) (*Letter, error) {
	l := &Letter{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLetter, err)
	}
	if l.Format < 1 || l.Format > format || !validID(l.ID) {
		return nil, fmt.Errorf("%w: format %d, id %.60q; this program knows formats up to %d", ErrLetter, l.Format, l.ID, format)
	}
	return l, nil
}

// decodeAs reads the letter that is stored as id. If it can't be read, the result is a damaged letter.
func decodeAs(id string, text []byte) *Letter {
	l, err := decode(text)
	if err == nil && l.ID != id {
		err = fmt.Errorf("%w: it is the letter %.60q", ErrLetter, l.ID)
	}
	if err != nil {
		return damaged(id, err)
	}
	return l
}

// damaged is what stands for a letter that can't be read.
func damaged(id string, err error) *Letter {
	return &Letter{ID: id, At: timeOf(id), State: Damaged, Detail: err.Error()}
}

// timeOf is when a letter got its id; zero if it is none of ours.
func timeOf(id string) time.Time {
	if !validID(id) {
		return time.Time{}
	}
	ms, _ := strconv.ParseInt(id[:timeDigits], 16, 64) // which validID has checked
	return time.UnixMilli(ms).UTC()
}

// summary is the letter without bodies.
func (l *Letter) summary() *Letter {
	s := *l
	s.Request.Body = nil
	if l.Base != nil {
		b := *l.Base
		b.View, b.Stored = nil, nil
		s.Base = &b
	}
	return &s
}

// idDigits is how many hex digits of an id are the time in ms, and how many are drawn.
const (
	timeDigits  = 12
	drawnDigits = 16
)

// newID names a letter. Ids sort by time.
func newID(now time.Time) string {
	var drawn [drawnDigits / 2]byte
	_, _ = rand.Read(drawn[:]) // never fails, says its documentation
	return fmt.Sprintf("%0*x%s", timeDigits, max(now.UnixMilli(), 0), hex.EncodeToString(drawn[:]))
}

// IDOf names a letter that may be kept again, by another process too, and is to be there once. what is what it is about, since a time.
func IDOf(since time.Time, what string) string {
	sum := sha256.Sum256([]byte(what))
	return idAt(since) + hex.EncodeToString(sum[:drawnDigits/2])
}

// validID reports whether s may be an id. It may be a file's name, and a segment of a path.
func validID(s string) bool {
	return len(s) == timeDigits+drawnDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// idAt is where the ids of letters from t on begin.
func idAt(t time.Time) string { return fmt.Sprintf("%0*x", timeDigits, max(t.UnixMilli(), 0)) }
