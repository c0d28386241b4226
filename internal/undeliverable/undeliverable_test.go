package undeliverable

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// ended is a PUT that has ended.
func ended(query string, status int) *Failure {
	w := &Failure{Attempts: 2, Search: &base.Search{Question: base.Question{
		Request: &base.Request{Rule: &rule.Rule{Name: "shop"}, Op: &api.Op{Kind: api.Index, Query: []byte(query)}},
		Terms:   intake.Terms{Name: "shop", Doc: es.Document{Ref: doc.Ref{Index: "shop", ID: "7"}}},
	}}}
	if status != 0 {
		w.Answer = respond.Error(status, "some_exception", strings.Repeat("ü", maxDetail))
	}
	return w
}

// refused is a PUT that the engine has refused.
func refused(status int, kind string) *Failure {
	w := ended("", status)
	w.Answer = respond.Error(status, kind, "so")
	w.Answer.Own = false
	return w
}

func TestAnErrorSaysWhetherTheWriteCanBePlacedLater(t *testing.T) {
	for want, list := range map[string][]error{
		"":                          {delivery.ErrUnknownOutcome, es.ErrForbidden, context.Canceled, &upstream.Error{Class: upstream.Cancelled}, errors.New("another")},
		outcome.UnplacedTimeout:     {intake.ErrTimeout},
		outcome.UnplacedUnreachable: {upstream.NotSent, doc.ErrNotWritten},
		outcome.UnplacedConflict:    {&retry.ExhaustedError{}},
	} {
		for _, err := range list {
			w := ended("", 0)
			if w.Err = err; w.Why() != want {
				t.Errorf("%v: %q, want %q", err, w.Why(), want)
			}
		}
	}
}

func TestAnAnswerSaysWhetherTheWriteCanBePlacedLater(t *testing.T) {
	busy, conflict := http.StatusTooManyRequests, http.StatusConflict
	for name, one := range map[string]struct {
		write  *Failure
		change func(*Failure)
		want   string
	}{
		"written":             {ended("", 200), nil, ""},
		"busy":                {ended("", busy), nil, outcome.UnplacedBusy},
		"busy, but final":     {ended("", busy), func(w *Failure) { w.Final = true }, ""},
		"busy, unknown":       {ended("", busy), func(w *Failure) { w.Outcome.Kind = outcome.Unknown }, ""},
		"conflict":            {ended("", conflict), nil, outcome.UnplacedConflict},
		"conflict, wanted":    {ended("", conflict), func(w *Failure) { w.Wanted = true }, ""},
		"conflict, only new":  {ended("", conflict), func(w *Failure) { w.OnlyNew = true }, ""},
		"conflict, create":    {ended("op_type=create", conflict), nil, ""},
		"conflict, own guard": {ended("if_seq_no=1&if_primary_term=1", conflict), nil, ""},
		"conflict, merged": {ended("if_seq_no=1&if_primary_term=1", conflict), func(w *Failure) { w.Rule.MergeExplicit = true },
			outcome.UnplacedConflict},
		"conflict, of all":     {ended("", conflict), func(w *Failure) { w.Answer.OfAll = true }, ""},
		"busy, of all":         {ended("", busy), func(w *Failure) { w.Answer.OfAll = true }, outcome.UnplacedBusy},
		"forbidden":            {ended("", 403), nil, ""},
		"blocked":              {refused(403, "cluster_block_exception"), nil, outcome.UnplacedRefused},
		"blocked, a full disk": {refused(429, "cluster_block_exception"), nil, outcome.UnplacedRefused},
		"blocked, of all": {refused(429, "cluster_block_exception"), func(w *Failure) { w.Answer.OfAll = true },
			outcome.UnplacedBusy},
		"rejected":             {refused(429, "es_rejected_execution_exception"), nil, outcome.UnplacedBusy},
		"a value":              {refused(400, "mapper_parsing_exception"), nil, outcome.UnplacedRefused},
		"a value, refused now": {refused(400, "document_parsing_exception"), nil, outcome.UnplacedRefused},
		"a new field":          {refused(400, "strict_dynamic_mapping_exception"), nil, outcome.UnplacedRefused},
		"refused here":         {refused(400, "mapper_parsing_exception"), func(w *Failure) { w.Answer.Own = true }, ""},
		"refused with all":     {refused(400, "mapper_parsing_exception"), func(w *Failure) { w.Answer.OfAll = true }, ""},
		"an unknown parameter": {refused(400, "illegal_argument_exception"), nil, ""},
		"an update's body":     {refused(400, "x_content_parse_exception"), nil, ""},
		"a guard of one half":  {refused(400, "action_request_validation_exception"), nil, ""},
		"what is no JSON":      {refused(400, "parse_exception"), nil, ""},
		"a closed index":       {refused(400, "index_closed_exception"), nil, ""},
		"of no type":           {refused(400, ""), nil, ""},
	} {
		if one.change != nil {
			one.change(one.write)
		}
		if got := one.write.Why(); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// The client of a write that goes as it is may accept a coding, or ask for another form: the engine's refusal is read all the same.
func TestABlockedIndexIsRecognizedWhateverTheFormAndCodingOfTheAnswer(t *testing.T) {
	const text = "---\nerror:\n  type: \"cluster_block_exception\"\n  reason: \"index [shop] blocked\"\nstatus: 403\n"
	var coded bytes.Buffer
	z := gzip.NewWriter(&coded)
	_, _ = z.Write(respond.Error(http.StatusForbidden, "cluster_block_exception", "index [shop] blocked").Body)
	_ = z.Close()
	for name, one := range map[string]struct {
		body  []byte
		field wire.Field
	}{
		"gzip": {coded.Bytes(), wire.Field{Name: []byte("content-encoding"), Value: []byte("gzip")}},
		"YAML": {[]byte(text), wire.Field{Name: []byte("content-type"), Value: []byte("application/yaml")}},
	} {
		w := ended("", 0)
		w.Answer = &respond.Answer{Status: http.StatusForbidden, Body: one.body, Fields: []wire.Field{one.field}}
		reason := w.Why()
		if l := w.Letter(reason); reason != outcome.UnplacedRefused || !l.Checked || l.Detail != "index [shop] blocked" {
			t.Errorf("%s: %q, and the letter is %+v", name, reason, l)
		}
	}
}

func TestALetterHoldsTheBaseAndALittleOfTheError(t *testing.T) {
	w := ended("", http.StatusConflict)
	w.Base = session.Base{Kind: session.KindRead, Numbers: doc.Numbers{SeqNo: 4, PrimaryTerm: 1}, View: []byte(`{"n":1}`)}
	l := w.Letter(outcome.UnplacedConflict)
	if !l.Checked || l.Status != 409 || l.ID != "7" || l.Rule != "shop" || string(l.Base.View) != `{"n":1}` {
		t.Errorf("%+v", l)
	}
	if len(l.Detail) > maxDetail || len(l.Detail) < maxDetail-4 || strings.ToValidUTF8(l.Detail, "?") != l.Detail {
		t.Errorf("the detail has %d bytes", len(l.Detail))
	}
	w.Base.Use = session.UseGuard
	if l = w.Letter(outcome.UnplacedBusy); l.Checked || l.Base.Kind != session.KindExplicit || l.Base.View != nil || l.Base.Numbers.SeqNo != 4 {
		t.Errorf("of a doubtful base only the numbers are kept: %+v", l)
	}
	w.Base = session.Base{Kind: session.KindLost}
	if l = w.Letter(outcome.UnplacedBusy); l.Base.Kind != session.KindNone {
		t.Errorf("there is no base: %+v", l.Base)
	}
}
