package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/upstream"
	"optimist/retry"
)

// engine answers the requests one after the other.
type engine struct {
	statuses []int
	payload  string // of all answers
	err      error
	sent     int
	last     *upstream.Request
}

func (e *engine) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
	e.sent++
	e.last = r
	if e.sent > len(e.statuses) {
		return nil, e.err
	}
	res := &upstream.Response{Payload: []byte(cmp.Or(e.payload, `{"_index":"shop","_id":"1","result":"updated"}`))}
	res.Status = e.statuses[e.sent-1]
	return res, nil
}

func quick() retry.Policy {
	return retry.Policy{MaxAttempts: 3, BaseInterval: time.Nanosecond, MaxInterval: time.Nanosecond}
}

func TestALostAnswerSaysWhetherTheWriteWasSent(t *testing.T) {
	for name, one := range map[string]struct{ err, want error }{
		"no node":              {upstream.NotSent, upstream.NotSent},
		"cancelled, unsent":    {&upstream.Error{Class: upstream.Cancelled}, doc.ErrNotWritten},
		"cancelled, sent":      {&upstream.Error{Class: upstream.Cancelled, Sent: true}, ErrUnknownOutcome},
		"the connection broke": {errors.New("reset"), ErrUnknownOutcome},
	} {
		e := &engine{err: one.err}
		_, err := Sender{e}.Send(t.Context(), &upstream.Request{})
		if !errors.Is(err, one.want) || errors.Is(err, ErrUnknownOutcome) != (one.want == ErrUnknownOutcome) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
		if e.last.Timeout != answerTimeout {
			t.Errorf("%s: the answer is waited for during %v", name, e.last.Timeout)
		}
	}
}

func TestARejectedWriteGoesAgainAsOftenAsThePolicyAllows(t *testing.T) {
	for name, one := range map[string]struct {
		statuses   []int
		want, sent int
	}{
		"taken":            {[]int{200}, 200, 1},
		"a conflict":       {[]int{409, 200}, 409, 1},
		"rejected once":    {[]int{429, 201}, 201, 2},
		"rejected for all": {[]int{429, 429, 429, 200}, 429, 3},
	} {
		e := &engine{statuses: one.statuses, err: errors.New("reset")}
		res, err := Sender{e}.SendPatiently(t.Context(), quick, &upstream.Request{})
		if err != nil || res.Status != one.want || e.sent != one.sent {
			t.Errorf("%s: %+v, %v, sent %d times", name, res, err, e.sent)
		}
	}
}

// TestAWriteThatABlockRefusesIsAnsweredAtOnce: an index whose disk is full is blocked with a 429. It stays so until somebody makes room.
// The client waited for the rule's max_elapsed, and each write was sent 20 times.
func TestAWriteThatABlockRefusesIsAnsweredAtOnce(t *testing.T) {
	e := &engine{statuses: []int{429, 429, 429}, payload: `{"error":{"type":"cluster_block_exception"},"status":429}`}
	res, err := Sender{e}.SendPatiently(t.Context(), quick, &upstream.Request{})
	if err != nil || res.Status != 429 || e.sent != 1 {
		t.Errorf("%+v, %v, sent %d times", res, err, e.sent)
	}
}

func TestARejectedWriteWhoseNextAnswerIsLostHasNoKnownOutcome(t *testing.T) {
	e := &engine{statuses: []int{429}, err: errors.New("reset")}
	if res, err := (Sender{e}).SendPatiently(t.Context(), quick, &upstream.Request{}); !errors.Is(err, ErrUnknownOutcome) || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestAnUnknownOutcomeIsNotSaidToBeNothingWritten: the re-read after a write fails, and its error says that nothing was written. That is about the
// try that wasn't made. The client would read it as the end of its write.
func TestAnUnknownOutcomeIsNotSaidToBeNothingWritten(t *testing.T) {
	lost := errors.New("the engine answered 302")
	unread := fmt.Errorf("%w: %w", doc.ErrNotWritten, lost)
	for name, err := range map[string]error{
		"a read":           unread,
		"a question":       CantAsk(lost),
		"tries that ended": &retry.ExhaustedError{Attempts: 20, Last: fmt.Errorf("%w: %w", doc.ErrConflict, unread)},
		"something else":   lost,
	} {
		got := Unknown(err)
		if !errors.Is(got, ErrUnknownOutcome) || !errors.Is(got, lost) || errors.Is(got, doc.ErrNotWritten) || errors.Is(got, doc.ErrConflict) ||
			strings.Contains(got.Error(), "nothing was written") || !strings.HasSuffix(got.Error(), "; then: the engine answered 302") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
