package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxAdminAnswer is how much of an admin listener's answer is read: a page of a thousand locks fits.
const maxAdminAnswer = 16 << 20

// whereAdmin is for who has asked at a wrong address, the data port's for instance.
const whereAdmin = "Its admin address is in the first lines of its log; name it with --admin"

// adminClient asks the admin listener of a running optimist.
type adminClient struct {
	command string // of this program, for its usage errors
	addr    string // as it was given
}

// do makes one request; body is JSON, or nil. It makes of an answer with status 200 what into is, and of another one an error with its
// reason. It returns the answer's body, too.
func (c *adminClient) do(ctx context.Context, method, path string, body []byte, into any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	addr, err := reachable(ctx, c.addr)
	if err != nil {
		return nil, usageError("optimist %s: %v", c.command, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("no optimist answers at %s: %w\n%s", c.addr, err, whereAdmin)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && json.Unmarshal(text, into) == nil {
		return text, nil
	}
	var failure struct{ Error struct{ Type, Reason string } }
	if json.Unmarshal(text, &failure) == nil && failure.Error.Reason != "" && resp.StatusCode != http.StatusOK {
		return nil, errors.New(failure.Error.Reason)
	}
	return nil, fmt.Errorf("%s isn't the admin listener of an optimist: it answered %s: %.300s\n%s", c.addr, resp.Status,
		bytes.TrimSpace(text), whereAdmin)
}

// reachable turns a host's name into its address: the admin listener doesn't take changes under names that it doesn't know.
// Without a host it is this machine.
func reachable(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is not an address; write host and port, as in 127.0.0.1:9281", addr)
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("the host of %q is unknown: %w", addr, err)
	}
	return net.JoinHostPort(found[0], port), nil
}
