package main

import (
	"cmp"
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

Exit status: 0 if everything will work, 1 if something won't, 2 if no engine is named or a file can't be read.`
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
	base, err := c.nodes(&cfg.Upstream)
	if err != nil {
		return usageError("optimist doctor: %v", err)
	}
	report, err := c.examine(p, cfg, rules, base)
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

// nodes is how the nodes are asked. The flags' files win over those of the configuration, and each is read once: it may be a pipe. An error
// names the flag, or the key, whose file can't be read.
func (c *doctorCmd) nodes(u *config.Upstream) (upstream.Config, error) {
	u.TLS.CAFile = cmp.Or(c.CAFile, u.TLS.CAFile)
	auth := config.Auth{APIKeyFile: c.APIKeyFile, BasicFile: c.BasicFile, BearerFile: c.BearerFile}
	if auth == (config.Auth{}) {
		return app.UpstreamConfig(u)
	}
	given, err := auth.AuthorizationOf(flagOf)
	if err != nil {
		return upstream.Config{}, err
	}
	u.Auth = config.Auth{}
	base, err := app.UpstreamConfig(u)
	base.Authorization = given
	return base, err
}

// examine asks each node by itself: a node that answers must not hide a node that doesn't.
func (c *doctorCmd) examine(p *process, cfg *config.Config, rules *rule.Set, base upstream.Config) (*doctor.Report, error) {
	base.HealthInterval = -1
	o := doctor.Options{Rules: rules, Auth: base.Authorization != "", Timeout: c.Timeout.Std()}
	for _, url := range cfg.Upstream.URLs {
		one := base
		one.URLs = []string{url}
		set, err := upstream.New(one)
		if err != nil {
			return nil, usageError("optimist doctor: %v", err)
		}
		defer set.Close()
		o.Nodes = append(o.Nodes, doctor.Node{URL: url, Doer: set})
	}
	for _, w := range warnings(cfg) {
		_, _ = io.WriteString(p.stderr, w.String()+"\n")
	}
	return doctor.Examine(p.ctx, o), nil
}
