package engine

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

//go:embed lock.painless
var lockScript string

// script is the script without what is for its readers: it goes along with every call, and is compiled once because it never
// changes.
func script() string {
	var b strings.Builder
	for line := range strings.Lines(lockScript) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// retries is how often the engine itself tries a script again that met another write. It does so at once.
const retries = 20

// body is one script call, without a newline.
func (s *Store) body(c *state.Call, source bool) ([]byte, error) {
	var u update
	u.ScriptedUpsert, u.Script.Lang, u.Script.Source, u.Source = true, "painless", s.source, source
	u.Script.Params.Call, u.Script.Params.Skew = c, s.o.Skew.Milliseconds()
	return json.Marshal(&u)
}

type update struct {
	Script struct {
		Lang   string `json:"lang"`
		Source string `json:"source"`
		Params struct {
			Call *state.Call `json:"call"`
			Skew int64       `json:"skew,omitempty"`
		} `json:"params"`
	} `json:"script"`
	ScriptedUpsert bool     `json:"scripted_upsert"`
	Upsert         struct{} `json:"upsert"`
	Source         bool     `json:"_source,omitempty"`
}

// scripted carries the call out by the engine's clock: here, where the document is known, or else by the script.
func (s *Store) scripted(ctx context.Context, id string, c *state.Call) (*state.Doc, []state.Result, error) {
	if d, results, done, err := s.ahead(ctx, id, c); done || err != nil {
		return d, results, err
	}
	return s.run(ctx, id, c)
}

// run has the script do it.
func (s *Store) run(ctx context.Context, id string, c *state.Call) (d *state.Doc, results []state.Result, err error) {
	d, results, err = s.call(ctx, id, c)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		err = s.failure(refused.a)
	}
	return d, results, err
}

// call is run. A script that the engine has refused is a *refusedError.
func (s *Store) call(ctx context.Context, id string, c *state.Call) (d *state.Doc, results []state.Result, err error) {
	body, err := s.body(c, false)
	if err != nil {
		return nil, nil, err
	}
	again := retries
	err = contend(ctx, func(ctx context.Context, _ int) error {
		sent := s.monotonic()
		a, err := s.send(ctx, esapi.UpdateRequest{Index: s.index, DocumentID: es.Segment(id), RetryOnConflict: &again, Source: []string{"true"},
			Body: bytes.NewReader(body)})
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusConflict:
			return doc.ErrConflict
		case a.Status == http.StatusBadRequest:
			return &refusedError{a}
		case a.Status != http.StatusOK && a.Status != http.StatusCreated:
			return s.failure(a)
		}
		item := gjson.ParseBytes(a.Body)
		if d, results, err = outcome(item, c); err == nil && item.Get("result").Str != noop {
			s.recent.noteOwn(id, d, numbersOf(item), reading{d.Seen, sent, s.monotonic()})
		}
		return err
	})
	return d, results, err
}

// noop is the result of a script that has changed nothing.
const noop = "noop"

// outcome reads what a script has done. A noop has done nothing, and doesn't say why not: that follows from the document that it
// found. Nothing in it had lapsed, or it would have been taken away.
func outcome(item gjson.Result, c *state.Call) (*state.Doc, []state.Result, error) {
	d := new(state.Doc)
	if source := item.Get("get._source"); source.Exists() {
		var err error
		if d, err = state.Parse([]byte(source.Raw)); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
		}
	}
	if item.Get("result").Str != noop {
		if len(d.Results) != len(c.Ops) {
			return nil, nil, fmt.Errorf("%w: the script has answered %d of %d operations", lockrouter.ErrStore, len(d.Results), len(c.Ops))
		}
		return d, d.Results, nil
	}
	results, changed := d.Clone().Apply(c, state.Clock{Now: d.Seen + 1, Unchanged: func(state.Mark) int64 { return 0 }})
	if changed {
		return nil, nil, fmt.Errorf("%w: the script has done nothing where something was to be done", lockrouter.ErrStore)
	}
	return d, results, nil
}
