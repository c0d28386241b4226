package lockrouter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"optimist/internal/jsontext"
	"optimist/internal/unit"
	"optimist/internal/uri"
	"optimist/lockrouter/state"
)

// parameters are what a request asks for, from its body and its query.
type parameters struct {
	Owner     string      `json:"owner"`
	ProcessID string      `json:"process_id"`
	Token     json.Number `json:"token"`
	TTL       string      `json:"ttl"`
	Wait      string      `json:"wait"`
	Priority  string      `json:"priority"`
	Mode      string      `json:"mode"`
	Note      string      `json:"note"`
	Fence     string      `json:"fence"`
	Resource  []string    `json:"resource"`
	Delay     string      `json:"delay"`
	MaxRetry  json.Number `json:"max_retry"`
	Undo      bool        `json:"undo"`

	renew bool
	token int64
	ttl   time.Duration // 0: the request doesn't say
	wait  time.Duration // negative: the request doesn't say
	delay time.Duration // 0: the request doesn't say
	tries int           // after the first one; negative: the request doesn't say
	class state.Class
	mode  state.Mode
}

// The bounds of names, in bytes: the lock's document keeps them.
const (
	longestOwner = 512
	longestNote  = 1024
)

// fenceTouch is the value of fence by which an acquisition gives the locked documents new sequence numbers.
const fenceTouch = "touch"

// parse reads a request for one lock.
func (r *Router) parse(q *Request) (*parameters, error) {
	a := new(parameters)
	return a, r.read(q, a, a)
}

// read reads a request's body into body, and then its query into a, which is a part of body.
func (r *Router) read(q *Request, body any, a *parameters) error {
	if err := strict(q.Body, body); err != nil {
		return err
	}
	pairs, err := params(q.Query)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := a.param(p.Name, p.Value); err != nil {
			return err
		}
	}
	if a.Fence != "" && a.Fence != fenceTouch {
		return badRequest("fence is touch, or isn't there; not [" + a.Fence + "]")
	}
	a.Owner = cmp.Or(a.Owner, a.ProcessID)
	return r.check(a)
}

// text refuses a value that isn't valid UTF-8. JSON would replace all wrong bytes by the same character, so that two owners could look like
// one.
func text(name, value string) error {
	if !utf8.ValidString(value) || strings.ContainsRune(value, utf8.RuneError) {
		return badRequest(name + " isn't UTF-8")
	}
	return nil
}

// strict reads a JSON object: see jsontext.Strict. A misspelt ttl must not become the default.
func strict(body []byte, into any) error {
	if err := jsontext.Strict(body, into); err != nil {
		return &Failure{Status: 400, Type: "parse_exception", Reason: "the body can't be read: " + err.Error()}
	}
	return nil
}

// params are a query's parameters, decoded.
func params(query []byte) ([]uri.Pair, error) {
	pairs, err := uri.Pairs(query, uri.UnescapeValue)
	if err != nil {
		return nil, badRequest(err.Error())
	}
	return pairs, nil
}

// engineParameters are the parameters that the engine takes with every request. The Router ignores them.
var engineParameters = []string{"pretty", "human", "error_trace"}

func unknownParameter(name string) error {
	if slices.Contains(engineParameters, name) {
		return nil
	}
	return badRequest("request contains unrecognized parameter: [" + name + "]")
}

func (a *parameters) param(name, value string) error {
	texts := map[string]*string{"owner": &a.Owner, "process_id": &a.ProcessID, "token": (*string)(&a.Token), "ttl": &a.TTL, "wait": &a.Wait,
		"priority": &a.Priority, "mode": &a.Mode, "note": &a.Note, "fence": &a.Fence, "delay": &a.Delay, "max_retry": (*string)(&a.MaxRetry)}
	switch text := texts[name]; {
	case text != nil:
		*text = value
	case name == "resource":
		a.Resource = append(a.Resource, value)
	case name == "renew":
		return flag(&a.renew, name, value)
	case name == "undo":
		return flag(&a.Undo, name, value)
	default:
		return unknownParameter(name)
	}
	return nil
}

// flag reads a switch: a name alone is on. What isn't understood is refused, whatever it was meant to be.
func flag(on *bool, name, value string) error {
	switch value {
	case "", "true":
		*on = true
	case "false":
		*on = false
	default:
		return badRequest(name + " is true or false, not [" + value + "]")
	}
	return nil
}

// check checks the parameters, and parses those that are text: token, durations, mode and class.
func (r *Router) check(a *parameters) (err error) {
	if len(a.Owner) > longestOwner || len(a.Note) > longestNote {
		return badRequest("owner must be no longer than 512 bytes, and note than 1024")
	}
	if err = text("owner", a.Owner); err == nil {
		err = text("note", a.Note)
	}
	if err != nil {
		return err
	}
	if a.Token != "" {
		if a.token, err = strconv.ParseInt(string(a.Token), 10, 64); err != nil || a.token < 0 {
			return badRequest("token is a whole number, as it was given; [" + string(a.Token) + "] isn't one")
		}
	}
	if a.TTL != "" {
		if a.ttl, err = r.span("ttl", a.TTL, r.o.MaxTTL); err != nil {
			return err
		}
		if a.ttl < time.Millisecond {
			return badRequest("ttl must be at least 1ms")
		}
	}
	a.wait = -1
	if a.Wait != "" {
		if a.wait, err = r.span("wait", a.Wait, r.o.MaxWait); err != nil {
			return err
		}
	}
	if err := r.checkTries(a); err != nil {
		return err
	}
	a.class = cmp.Or(state.Class(a.Priority), state.Foreground)
	if !slices.Contains([]state.Class{state.Foreground, state.Background}, a.class) {
		return badRequest("priority is foreground or background, not [" + a.Priority + "]")
	}
	a.mode = cmp.Or(state.Mode(a.Mode), state.Exclusive)
	if !slices.Contains([]state.Mode{state.Exclusive, state.Shared}, a.mode) {
		return badRequest("mode is exclusive or shared, not [" + a.Mode + "]")
	}
	return nil
}

// defaultDelay is the time between two tries, if a request says only how many.
const defaultDelay = 100 * time.Millisecond

// checkTries reads how often a lock is tried for, and the time between two tries. Together they make a time to wait. A store with a queue
// uses only that.
func (r *Router) checkTries(a *parameters) (err error) {
	a.tries = -1
	if a.Delay != "" {
		if a.delay, err = r.span("delay", a.Delay, r.o.MaxWait); err != nil {
			return err
		}
		if a.delay < time.Millisecond {
			return badRequest("delay must be at least 1ms")
		}
	}
	if a.MaxRetry == "" {
		return nil
	}
	const most = 1_000_000
	if a.tries, err = strconv.Atoi(string(a.MaxRetry)); err != nil || a.tries < 0 || a.tries > most {
		return badRequest("max_retry is a whole number from 0 to 1000000; [" + string(a.MaxRetry) + "] isn't one")
	}
	a.delay = cmp.Or(a.delay, defaultDelay)
	wait := time.Duration(a.tries) * a.delay
	if wait > r.o.MaxWait || wait < 0 {
		return badRequest(fmt.Sprintf("max_retry times delay is longer than %s, the longest wait", r.o.MaxWait))
	}
	if a.wait < 0 || wait < a.wait {
		a.wait = wait
	}
	return nil
}

func (r *Router) span(name, value string, most time.Duration) (time.Duration, error) {
	d, err := unit.ParseDuration(value)
	if err != nil {
		return 0, badRequest(name + ": " + err.Error())
	}
	if d.Std() > most {
		return 0, badRequest(fmt.Sprintf("%s: [%s] is longer than %s, the longest", name, value, most))
	}
	return d.Std(), nil
}
