package lockrouter

import (
	"strconv"
	"time"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/share"
	"optimist/internal/wire"
	"optimist/lockrouter/state"
)

// Request is a request under the path of the locks. The Router keeps nothing of it.
type Request struct {
	Method      string
	Path, Query []byte // as they stood on the wire
	Body        []byte
	// Fields are the fields of the client's request with its credentials, for a search on its behalf.
	Fields []wire.Field
	// Client is who asks. Clients share the room of trees, and the places to wait, by their networks. The zero value is optimist itself, which
	// has no share.
	Client share.Client
	// Admin allows an operator's requests: to release another owner's lock.
	Admin bool
}

// client is the word for the client's network in lock documents. Nobody has checked credentials yet, so that they could be made up.
func (q *Request) client() string {
	if q.Client == (share.Client{}) {
		return ""
	}
	return q.Client.Network.Addr().String()
}

// Answer is the client's answer. Body is JSON.
type Answer struct {
	Status int
	Fields []wire.Field
	Body   []byte
}

// The types of the errors, as in error.type of the body.
const (
	TypeHeld      = "lock_held"
	TypeTimeout   = "lock_wait_timeout"
	TypeExpired   = "lease_expired"
	TypeMissing   = "lock_not_found"
	TypeReserved  = "lock_reserved" // it is of an index whose locks are given out by requests of another form
	TypeNotOwner  = "not_the_owner"
	TypeFull      = "lock_tree_full"
	TypeStore     = "lock_store_unavailable"
	TypeAmbiguous = "lock_token_ambiguous"
	TypeUnable    = "lock_not_supported" // by the store that the locks are in
	TypeBad       = "illegal_argument_exception"
)

// Failure is an error in the form in which a client gets it.
type Failure struct {
	Status int
	Type   string
	Reason string
	Detail map[string]any // further members of error
	Retry  time.Duration  // after how long the client may ask again (Retry-After); 0: the answer doesn't say
	Fields []wire.Field   // further fields of the answer
}

// Error implements error.
func (f *Failure) Error() string { return f.Type + ": " + f.Reason }

func badRequest(reason string) *Failure { return &Failure{Status: 400, Type: TypeBad, Reason: reason} }

func missing(reason string) *Failure { return &Failure{Status: 404, Type: TypeMissing, Reason: reason} }

// answer is the failure in the engine's shape.
func (f *Failure) answer() *Answer {
	detail, err := jsontext.Marshal(f.Detail)
	if err != nil || f.Detail == nil {
		detail = nil // only strings, numbers and maps of them are ever passed
	}
	e := api.Error{Status: f.Status, Type: f.Type, Reason: f.Reason, Detail: detail}
	a := jsonAnswer(f.Status, e.Append(nil))
	a.Fields = append(a.Fields, f.Fields...)
	if f.Retry > 0 {
		seconds := max(1, int64((f.Retry+time.Second-1)/time.Second))
		a.Fields = append(a.Fields, wire.Field{Name: []byte("Retry-After"), Value: strconv.AppendInt(nil, seconds, 10)})
	}
	return a
}

func reply(status int, body any) *Answer {
	b, err := jsontext.Marshal(body)
	if err != nil {
		b = []byte(`{}`) // only strings, numbers and maps of them are ever passed
	}
	return jsonAnswer(status, b)
}

func jsonAnswer(status int, body []byte) *Answer {
	return &Answer{Status: status, Body: body,
		Fields: []wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}}
}

// Lease is a lease in the form of an answer. Times are in UTC, ExpiresIn and Waited in ms.
type Lease struct {
	Lock       string     `json:"lock"`
	Owner      string     `json:"owner"`
	Token      int64      `json:"token,omitempty"`
	Mode       state.Mode `json:"mode,omitempty"`
	AcquiredAt string     `json:"acquired_at"`
	ExpiresAt  string     `json:"expires_at"`
	ExpiresIn  int64      `json:"expires_in_ms"`
	Waited     *int64     `json:"waited_ms,omitempty"`
	Note       string     `json:"note"`
	Waiting    *int64     `json:"waiting,omitempty"`
	Store      string     `json:"store,omitempty"`       // of a Keeper from outside
	BestEffort bool       `json:"best_effort,omitempty"` // as in Ability
	Reentered  bool       `json:"-"`                     // the owner had it already

	over bool // it has ended, by the document's clock as this proxy knows it
	near bool // it is of a lock above or below the one that was asked for
}

// leaseOf makes the Lease of h; now is the time by the document's clock. If own is false, the lease is another owner's, and the token is
// left out: whoever knows a token can release its lease.
func leaseOf(d *state.Doc, h *state.Hold, now int64, own bool) Lease {
	l := Lease{Lock: lockOf(d, h.Path), Owner: h.Owner, AcquiredAt: instant(h.Since), ExpiresAt: instant(h.Until),
		ExpiresIn: max(min(h.Until-now, h.TTL), 0), Note: h.Note}
	if own {
		l.Token = h.Token
	}
	if d.Kind == state.Tree || h.Mode == state.Shared {
		l.Mode = h.Mode
	}
	return l
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
