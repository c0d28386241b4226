package es

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"optimist/internal/obs"
)

// OwnErrors are what the engine answers to optimist's own requests instead of what was asked for. The engine's reason may name optimist's
// user, and the privileges that it lacks: the log gets that, and clients don't. OwnErrors is safe for concurrent use.
type OwnErrors struct {
	Log *slog.Logger

	mu   sync.Mutex
	some map[int]*obs.Seldom // by status: one 403 isn't lost among many 429
}

// Note tells the log of such an answer to a request about an index, and returns what clients may know of it.
func (e *OwnErrors) Note(index string, a Answer) string {
	if n, tell := e.seldom(a.Status).Count(); tell {
		e.Log.Warn("the engine has answered a request of optimist's own with an error", obs.KeyIndex, index, obs.KeyReason, Why(a),
			obs.KeyCount, n)
	}
	return strings.TrimSpace(fmt.Sprintf("the engine answered %d %s", a.Status, gjson.GetBytes(a.Body, "error.type").Str))
}

// seldom counts the answers with a status. Whatever isn't a status of HTTP is counted together: so the map stays small.
func (e *OwnErrors) seldom(status int) *obs.Seldom {
	if status < 100 || status > 599 {
		status = 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.some == nil {
		e.some = map[int]*obs.Seldom{}
	}
	if e.some[status] == nil {
		e.some[status] = new(obs.Seldom)
	}
	return e.some[status]
}

// Why says for the log why the engine has refused a request.
func Why(a Answer) string {
	why := gjson.GetBytes(a.Body, "error.reason").Str
	if cause := gjson.GetBytes(a.Body, "error.caused_by.reason").Str; cause != "" {
		why += ": " + cause
	}
	return fmt.Sprintf("%d %.300s", a.Status, cmp.Or(why, string(a.Body)))
}
