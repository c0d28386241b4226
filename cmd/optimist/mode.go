package main

import (
	"fmt"
	"net/http"

	"optimist/internal/config"
)

type modeCmd struct {
	adminFlag `embed:""`
	Mode      string `arg:"" optional:"" help:"guard, observe or off. Without it, the command shows the current mode."`
}

// Help is the command's manual, beyond its flags.
func (modeCmd) Help() string {
	return `The modes:

  guard     writes are guarded and merged
  observe   no byte is changed; lost updates are counted in the metrics, by index
  off       everything is forwarded as it is

A change takes effect at once, for new requests. It holds until the process ends or the mode in its configuration file
changes.`
}

// Run asks the admin listener.
func (c *modeCmd) Run(p *process) error {
	if _, err := config.ParseMode(c.Mode); c.Mode != "" && err != nil {
		return usageError("optimist mode: %v", err)
	}
	method, body := http.MethodGet, []byte(nil)
	if c.Mode != "" {
		method, body = http.MethodPut, fmt.Appendf(nil, `{"mode":%q}`, c.Mode)
	}
	var answer struct{ Mode, Before string }
	if _, err := (&adminClient{command: "mode", where: c.adminFlag}).do(p.ctx, method, "/_optimist/mode", body, &answer); err != nil {
		return err
	}
	if answer.Before != "" {
		fmt.Fprintf(p.stdout, "mode: %s (was %s)\n", answer.Mode, answer.Before)
	} else {
		fmt.Fprintf(p.stdout, "mode: %s\n", answer.Mode)
	}
	return nil
}
