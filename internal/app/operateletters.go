package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/admin"
	"optimist/internal/api"
	"optimist/internal/deadletter"
	"optimist/internal/jsontext"
	"optimist/internal/outcome"
	"optimist/internal/unit"
)

// lettersQuery is what a request for several dead letters asks: which, and what may be done to them.
type lettersQuery struct {
	Rule      string `json:"rule"`
	Index     string `json:"index"`
	Document  string `json:"document"`
	Reason    string `json:"reason"`
	State     string `json:"state"`
	OlderThan string `json:"older_than"` // a duration
	NewerThan string `json:"newer_than"`
	After     string `json:"after"` // an id
	Size      int    `json:"size"`
	All       bool   `json:"all"` // nothing of this selects letters, and all are meant

	Doubtful  bool `json:"doubtful"`  // also those that may have been written already
	Unchecked bool `json:"unchecked"` // also those whose clients the engine hasn't let write
	Overwrite bool `json:"overwrite"` // also whole documents whose base is unknown
}

// operateLetters answers the admin listener's requests for dead letters.
func (a *App) operateLetters(ctx context.Context, r *admin.LettersRequest) (status int, answer any) {
	query, err := readLettersQuery(r)
	if err != nil {
		return letterError(http.StatusBadRequest, "invalid_request", err)
	}
	id, do, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
	switch {
	case id == "":
		return a.listLetters(ctx, query)
	case id == "_replay":
		return a.replayLetters(ctx, query, r.Authorization)
	case id == "_delete":
		return a.deleteLetters(ctx, query)
	case do == "_replay":
		result, err := a.letters.Replay(ctx, id, query.allow(), a.makeAgain(query, r.Authorization))
		return letterAnswer(result, err)
	case r.Method == http.MethodDelete:
		err := a.letters.Delete(ctx, id)
		return letterAnswer(map[string]any{"deleted": id}, err)
	}
	l, err := a.letters.Get(ctx, id)
	return letterAnswer(l, err)
}

func (a *App) makeAgain(query *lettersQuery, authorization string) deadletter.Make {
	return func(ctx context.Context, l *deadletter.Letter) deadletter.Written {
		return a.replayLetter(ctx, l, authorization, query.Overwrite)
	}
}

// readLettersQuery reads the query and the body. What can't be understood is an error: it may have been meant to leave letters out.
func readLettersQuery(r *admin.LettersRequest) (*lettersQuery, error) {
	query := &lettersQuery{}
	if err := jsontext.Strict(r.Body, query); err != nil {
		return nil, err
	}
	size := ""
	known := map[string]*string{"rule": &query.Rule, "index": &query.Index, "document": &query.Document, "reason": &query.Reason,
		"state": &query.State, "older_than": &query.OlderThan, "newer_than": &query.NewerThan, "after": &query.After, "size": &size}
	for name, value := range r.Query {
		into := known[name]
		switch {
		case into != nil:
			*into = cmp.Or(value, *into)
		case name != "pretty": // the answer always is
			return nil, noSuchParameter(name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	if size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return nil, errors.New("size: want a number from 1 on")
		}
		query.Size = n
	}
	_, err := query.query(time.Now())
	return query, err
}

// selects reports whether the query selects some of the letters. After and Size are how a caller goes through them.
func (k *lettersQuery) selects() bool {
	return cmp.Or(k.Rule, k.Index, k.Document, k.Reason, k.State, k.OlderThan, k.NewerThan) != ""
}

func (k *lettersQuery) allow() deadletter.Allow {
	return deadletter.Allow{Doubtful: k.Doubtful, Unchecked: k.Unchecked}
}

// letterReasons are those that letters have.
var letterReasons = append(outcome.Unplaced(), reasonUndo)

// query is which letters are meant.
func (k *lettersQuery) query(now time.Time) (*deadletter.Query, error) {
	q := &deadletter.Query{Rule: k.Rule, Index: k.Index, Document: k.Document, Reason: k.Reason, State: deadletter.State(k.State),
		After: k.After, Size: k.Size}
	switch q.State {
	case "", deadletter.Waiting, deadletter.Replaying, deadletter.Doubtful:
	default:
		return nil, errors.New("state: want waiting, replaying or doubtful")
	}
	if q.Reason != "" && !slices.Contains(letterReasons, q.Reason) {
		return nil, errors.New("reason: want one of " + strings.Join(letterReasons, ", "))
	}
	for _, one := range []struct {
		name, text string
		into       *time.Time
	}{{"older_than", k.OlderThan, &q.Before}, {"newer_than", k.NewerThan, &q.Since}} {
		if one.text == "" {
			continue
		}
		d, err := unit.ParseDuration(one.text)
		if err != nil {
			return nil, errors.New(one.name + ": " + err.Error())
		}
		*one.into = now.Add(-d.Std())
	}
	return q, nil
}

func (a *App) listLetters(ctx context.Context, query *lettersQuery) (int, any) {
	q, _ := query.query(time.Now()) // it was read once
	q.Size = cmp.Or(q.Size, 100)
	page, err := a.letters.List(ctx, q)
	return letterAnswer(page, err)
}

const (
	batchSize = 100              // letters of one call, unless it says otherwise
	batchTime = 10 * time.Second // no further letter is begun after this long: whoever asks sees how far it is
)

// lettersDone is the result of one call. To handle all letters, the caller calls again with after: next, until that is empty. Away says
// why the call saw only the letters of this process's folder.
type lettersDone struct {
	Results []*deadletter.Result `json:"results"`
	Counts  map[string]int       `json:"counts"`
	Next    string               `json:"next,omitempty"`
	Away    string               `json:"away,omitempty"`
}

// replayLetters replays those that are meant, the oldest first, one after the other.
func (a *App) replayLetters(ctx context.Context, query *lettersQuery, authorization string) (int, any) {
	return a.eachLetter(ctx, query, func(l *deadletter.Letter) (*deadletter.Result, error) {
		return a.letters.Replay(ctx, l.ID, query.allow(), a.makeAgain(query, authorization))
	})
}

func (a *App) deleteLetters(ctx context.Context, query *lettersQuery) (int, any) {
	return a.eachLetter(ctx, query, func(l *deadletter.Letter) (*deadletter.Result, error) {
		switch err := a.letters.Delete(ctx, l.ID); {
		case err == nil:
			return &deadletter.Result{ID: l.ID, Result: "deleted"}, nil
		case errors.Is(err, deadletter.ErrNoLetter):
			return &deadletter.Result{ID: l.ID, Result: deadletter.Missing}, nil
		case errors.Is(err, deadletter.ErrTaken):
			return &deadletter.Result{ID: l.ID, Result: deadletter.Busy, Reason: err.Error()}, nil
		default:
			return nil, err
		}
	})
}

// eachLetter does something to one letter after the other. An error ends it, and is told where nothing was done before it; otherwise what
// was done is told, and the next call has the error.
func (a *App) eachLetter(ctx context.Context, query *lettersQuery, do func(*deadletter.Letter) (*deadletter.Result, error)) (int, any) {
	if !query.selects() && !query.All {
		return letterError(http.StatusBadRequest, "invalid_request",
			errors.New(`which dead letters? Want one of rule, index, document, reason, state, older_than and newer_than, or "all": true`))
	}
	began := time.Now()
	q, _ := query.query(began) // it was read once
	if q.Size = cmp.Or(q.Size, batchSize); q.Size > batchSize {
		q.Size = batchSize
	}
	page, err := a.letters.List(ctx, q)
	if err != nil {
		return letterAnswer(nil, err)
	}
	done := &lettersDone{Results: []*deadletter.Result{}, Counts: map[string]int{}, Next: page.Next, Away: page.Away}
	for i, l := range page.Letters {
		if i > 0 && time.Since(began) > batchTime {
			done.Next = page.Letters[i-1].ID
			break
		}
		r, err := do(l)
		if err != nil && i == 0 {
			return letterAnswer(nil, err)
		}
		if err != nil {
			done.Next = page.Letters[i-1].ID
			break
		}
		done.Results = append(done.Results, r)
		done.Counts[r.Result]++
	}
	return http.StatusOK, done
}

func letterAnswer(v any, err error) (int, any) {
	switch {
	case err == nil:
		return http.StatusOK, v
	case errors.Is(err, deadletter.ErrNoLetter):
		return letterError(http.StatusNotFound, "dead_letter_not_found", err)
	case errors.Is(err, deadletter.ErrTaken):
		return letterError(http.StatusConflict, "dead_letter_taken", err)
	}
	return letterError(http.StatusServiceUnavailable, "dead_letter_store_unavailable", err)
}

func letterError(status int, kind string, err error) (int, any) {
	return status, json.RawMessage((&api.Error{Status: status, Type: kind, Reason: err.Error()}).Append(nil))
}

// reasonOf is why an answer of the engine's, or one in its shape, refuses.
func reasonOf(body []byte) string {
	v := gjson.GetManyBytes(body, "error.type", "error.reason", "result")
	if v[0].Str != "" {
		return v[0].Str + ": " + v[1].Str
	}
	return cmp.Or(v[2].Str, "the answer gives no reason")
}
