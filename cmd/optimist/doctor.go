package main

import (
	"io"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/doctor"
	"optimist/internal/rule"
	"optimist/internal/unit"
	"optimist/internal/upstream"
)

type doctorCmd struct {
	Config     string        `help:"Configuration file with the upstream and the rules." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	Upstream   []string      `help:"A node of the engine. Repeat it, or use commas, for more." env:"OPTIMIST_UPSTREAM" placeholder:"URL"`
	APIKeyFile string        `help:"File with an API key: as the engine encodes it, or id:api_key." xor:"auth" placeholder:"FILE"`
	BasicFile  string        `help:"File with user:password." xor:"auth" placeholder:"FILE"`
	BearerFile string        `help:"File with a token." xor:"auth" placeholder:"FILE"`
	CAFile     string        `name:"ca-file" help:"PEM file of the authorities for the nodes' certificates." placeholder:"FILE"`
	Timeout    unit.Duration `help:"How long each answer may take." default:"10s"`
}

// Help is the command's manual, beyond its flags.
func (doctorCmd) Help() string {
	return `It asks for the version, the product header, the privileges that it can see, scripts, and every index that a rule
takes: whether the index has sequence numbers, keeps _source whole, and has ingest pipelines. It writes nothing, and it
sees only what its own credentials may see.

Exit status: 0 if everything will work, 1 if something won't, 2 if no engine is named or a flag's file can't be read.`
}

// Run asks and prints.
func (c *doctorCmd) Run(p *process) error {
	cfg, rules, err := (&settings{c.Config, config.Overrides{Upstream: c.Upstream}}).load()
	if err != nil {
		return badConfig(p.stderr, err, exitFailed)
	}
	if len(cfg.Upstream.URLs) == 0 {
		return usageError("optimist doctor: no engine is named; name it with --upstream URL, or with upstream.urls in the file of --config")
	}
	if err := c.override(&cfg.Upstream); err != nil {
		return usageError("optimist doctor: %v", err)
	}
	report, err := c.examine(p, cfg, rules)
	if err != nil {
		return err
	}
	if err := report.Write(p.stdout); err != nil {
		return err
	}
	if report.Failed() {
		return &exitError{status: exitFailed}
	}
	return nil
}

// override puts the flags' files over those of the configuration. An error names the flag whose file can't be read.
func (c *doctorCmd) override(u *config.Upstream) error {
	if c.CAFile != "" {
		u.TLS.CAFile = c.CAFile
	}
	auth := config.Auth{APIKeyFile: c.APIKeyFile, BasicFile: c.BasicFile, BearerFile: c.BearerFile}
	if auth == (config.Auth{}) {
		return nil
	}
	u.Auth = auth
	_, err := auth.AuthorizationOf(flagOf)
	return err
}

// examine asks each node by itself, so that one that answers doesn't stand in for one that doesn't.
func (c *doctorCmd) examine(p *process, cfg *config.Config, rules *rule.Set) (*doctor.Report, error) {
	base, err := app.UpstreamConfig(&cfg.Upstream)
	if err != nil {
		return nil, err
	}
	base.HealthInterval = -1
	o := doctor.Options{Rules: rules, Auth: base.Authorization != "", Timeout: c.Timeout.Std()}
	for _, url := range cfg.Upstream.URLs {
		one := base
		one.URLs = []string{url}
		set, err := upstream.New(one)
		if err != nil {
			return nil, err
		}
		defer set.Close()
		o.Nodes = append(o.Nodes, doctor.Node{URL: url, Doer: set})
	}
	for _, w := range warnings(cfg) {
		_, _ = io.WriteString(p.stderr, w.String()+"\n")
	}
	return doctor.Examine(p.ctx, o), nil
}
