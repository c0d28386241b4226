package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"optimist/internal/hook"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/secure"
)

// Switch is the mode of the whole; *rule.Switch is one.
type Switch interface {
	Mode() rule.Mode
	SetMode(rule.Mode) (before rule.Mode)
}

// Node is what is told of a node of the engine.
type Node struct {
	URL   string `json:"url"`
	Alive bool   `json:"alive"`
	Error string `json:"error,omitempty"` // why it isn't alive
}

// Locks answers a request for locks as the data port does, in the operator's name: it sees tokens, and may release what others
// hold.
type Locks func(ctx context.Context, method string, path, query, body []byte) (status int, answer []byte, err error)

// Options are what the listener tells and changes. All but Access, Hosts, Log, Locks, Letters, Undo and Changed are required. Its
// functions are called from many goroutines.
type Options struct {
	Build   obs.Build
	Metrics prometheus.Gatherer
	Switch  Switch
	Config  func() ([]byte, error) // the configuration in force, as JSON, without secrets
	Nodes   func() []Node
	Ready   func() error          // nil if requests can be served; else why not
	Changed hook.Func1[rule.Mode] // called with a changed mode, after it is in force
	Locks   Locks                 // nil: there are none
	Letters Letters               // nil: there are none
	Undo    Undo                  // nil: there is no path for journals

	// Hot tells the documents with the most conflicts, at most top; Suggestions what rules could say about an index, or, without a
	// name, about all.
	Hot         func(top int) any
	Suggestions func(index string) any

	Access Access
	Hosts  []string // names by which the listener may be reached, beyond addresses and localhost
	Log    *slog.Logger
}

// Server serves the admin listener. Make it with New.
type Server struct {
	o        Options
	http     *fasthttp.Server
	paths    map[string]endpoint
	profiles fasthttp.RequestHandler
	started  time.Time
	hosts    map[string]bool
	refused  obs.Seldom // requests without a token
	strange  obs.Seldom // requests of other sites
}

// Letters answers a request for dead letters. path is what stands behind their path; authorization is for replays.
type Letters func(ctx context.Context, r *LettersRequest) (status int, answer any)

// Undo answers a request for journals.
type Undo func(ctx context.Context, r *UndoRequest) (status int, answer any)

// endpoint is one path: the handlers of its requests, and what the requests may bring.
type endpoint struct {
	handle  fasthttp.RequestHandler // nil: it can't be read
	put     fasthttp.RequestHandler // nil: it can't be changed
	change  string                  // the method that put is for
	guarded bool                    // not for pages of other sites, not even to read
	open    bool                    // everybody may ask, but is told less
}

// LettersRequest is what the listener is asked.
type LettersRequest struct {
	Method string
	Path   string            // "", "/{id}", "/{id}/_replay", "/_replay" or "/_delete"
	Query  map[string]string // the parameters, decoded
	Body   []byte
	// Authorization is for replays; empty: they have no credentials.
	Authorization string
}

// UndoRequest is what the listener is asked.
type UndoRequest struct {
	Lock  []byte            // the path of a lock as it was sent; empty: all
	Query map[string]string // the parameters, decoded
}

// Access says who may use the listener. The zero value is for a loopback address: everybody who reaches the listener may use it. Then
// there are no profiles, because they show the memory of the process.
type Access struct {
	// Token is what requests have to bring, as Authorization: Bearer. Nil: there is none.
	Token *secure.Token
	// Certificates says that a client's certificate is enough, too. Those that the listener accepts have been checked.
	Certificates bool
}

func (a *Access) asks() bool { return a.Token != nil || a.Certificates }
