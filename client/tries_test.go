package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"optimist/client"
)

// TestBetweenTwoTriesTheCallerHasItsTurn, and can stop.
func TestBetweenTwoTriesTheCallerHasItsTurn(t *testing.T) {
	c := client.New(started(t), client.Options{})
	lock := client.Global("tries")
	err := c.DoInLock(t.Context(), lock, client.LockOptions{}, func(ctx context.Context) error {
		var tries []int
		o := client.LockOptions{Retries: 2, Delay: time.Millisecond, Between: func(_ context.Context, try int) error {
			tries = append(tries, try)
			return nil
		}}
		err := c.DoInLock(ctx, lock, o, func(context.Context) error { t.Error("two have the lock"); return nil })
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Type != "lock_held" || len(tries) != 2 || tries[1] != 2 {
			t.Errorf("%v after %v", err, tries)
		}
		stop := errors.New("enough")
		o.Between = func(context.Context, int) error { return stop }
		if err := c.DoInLock(ctx, lock, o, func(context.Context) error { return nil }); !errors.Is(err, stop) {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestALeaseThatIsShorterThanAskedForIsRenewedInTime: stores of locks may bound leases.
func TestALeaseThatIsShorterThanAskedForIsRenewedInTime(t *testing.T) {
	renewed := make(chan struct{}, 100)
	answers := transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("renew") {
			renewed <- struct{}{}
		}
		return &http.Response{StatusCode: 201, Body: io.NopCloser(strings.NewReader(`{"token":1,"expires_in_ms":1000,"waited_ms":0}`)), Request: r}, nil
	})
	c := client.New("http://127.0.0.1:1", client.Options{HTTP: &http.Client{Transport: answers}})
	err := c.DoInLock(t.Context(), client.Global("a"), client.LockOptions{TTL: time.Hour}, func(ctx context.Context) error {
		select {
		case <-renewed: // else the lease of one second would be lost
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestARenewalThatHangsIsTriedAgain: the proxy that got it may have been stopped, while others behind the same balancer answer.
func TestARenewalThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int32
		renewed := make(chan struct{}, 100)
		answers := transport(func(r *http.Request) (*http.Response, error) {
			if renews(r) {
				if renewals.Add(1) == 1 {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				renewed <- struct{}{}
			}
			return &http.Response{StatusCode: 201, Body: io.NopCloser(strings.NewReader(`{"token":1,"expires_in_ms":30000,"waited_ms":0}`)), Request: r}, nil
		})
		c := client.New("http://127.0.0.1:1", client.Options{HTTP: &http.Client{Transport: answers}})
		err := c.DoInLock(t.Context(), client.Global("a"), client.LockOptions{}, func(ctx context.Context) error {
			select {
			case <-renewed:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}
