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

	"optimist/internal/config"
)

type modeCmd struct {
	Mode  string `arg:"" optional:"" help:"guard, observe or off. Without it, the mode in force is shown."`
	Admin string `help:"Admin listener of that optimist. Default ${default}." default:"127.0.0.1:9281" env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
}

// Help is the command's manual, beyond its flags.
func (modeCmd) Help() string {
	return `The modes:

  guard     writes are guarded and merged
  observe   no byte is changed; lost updates are counted in the metrics, by index
  off       everything is forwarded as it is

A change holds for new requests, at once, until the process ends or the mode in its configuration changes.`
}

// Run asks the admin listener.
func (c *modeCmd) Run(p *process) error {
	if _, err := config.ParseMode(c.Mode); c.Mode != "" && err != nil {
		return usageError("optimist mode: %v", err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	addr, err := reachable(ctx, c.Admin)
	if err != nil {
		return usageError("optimist mode: %v", err)
	}
	method, body := http.MethodGet, []byte(nil)
	if c.Mode != "" {
		method, body = http.MethodPut, fmt.Appendf(nil, `{"mode":%q}`, c.Mode)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/_optimist/mode", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("no optimist answers at %s: %w\n"+
			"Its admin address stands in the first lines of its log; name it with --admin", c.Admin, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var answer struct{ Mode, Before string }
	if resp.StatusCode != http.StatusOK || json.Unmarshal(text, &answer) != nil || answer.Mode == "" {
		return fmt.Errorf("%s answered %s: %.300s", c.Admin, resp.Status, bytes.TrimSpace(text))
	}
	if answer.Before != "" {
		fmt.Fprintf(p.stdout, "mode: %s (was %s)\n", answer.Mode, answer.Before)
	} else {
		fmt.Fprintf(p.stdout, "mode: %s\n", answer.Mode)
	}
	return nil
}

// reachable turns a host's name into its address: the admin listener doesn't take changes under names that it doesn't know.
// Without a host it is this machine.
func reachable(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is no address; write host and port, as in 127.0.0.1:9281", addr)
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("the host of %q isn't known: %w", addr, err)
	}
	return net.JoinHostPort(found[0], port), nil
}
