package es

import (
	"bytes"
	"context"
	"net/http"

	"optimist/internal/upstream"
)

// Refusal asks whether the engine knows a caller, whatever the caller may do there. The request has that method and path, and says
// nothing more. It returns the engine's answer if the engine doesn't know the caller's credentials (401), and nil if it does. Call Release
// of the answer.
// Errors: *StatusError if the engine can't say it now, and those of the upstream.
func Refusal(ctx context.Context, up Doer, caller Caller, method, path string) (*upstream.Response, error) {
	q := &upstream.Request{Method: method, Target: caller.target(path), Client: caller.Client, Own: caller.Own,
		Fields: append(caller.appendFields(nil), acceptJSON), Repeatable: true, Timeout: patience}
	if method != http.MethodGet {
		q.Body = []byte{} // some gateways want a Content-Length, before they look who the client is
	}
	res, err := up.Do(ctx, q)
	if err != nil {
		return nil, err
	}
	if res.Status == http.StatusUnauthorized {
		return res, nil
	}
	defer res.Release()
	if res.Status >= http.StatusInternalServerError || res.Status == http.StatusTooManyRequests {
		return nil, &StatusError{Status: res.Status, Body: bytes.Clone(res.Payload)}
	}
	return nil, nil
}
