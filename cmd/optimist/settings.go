package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"optimist/internal/config"
	"optimist/internal/obs"
	"optimist/internal/rule"
)

// settings are the flags that stand for keys of the configuration; they win over the file.
type settings struct {
	Config    string   `help:"Configuration file. Without one, the defaults apply." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	Listen    string   `help:"Address of the data port. Default 127.0.0.1:9280." env:"OPTIMIST_LISTEN" placeholder:"ADDR"`
	Admin     string   `help:"Address of the admin listener. Default 127.0.0.1:9281." env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
	Upstream  []string `help:"A node: http://127.0.0.1:9200. Repeat it, or use commas, for more." env:"OPTIMIST_UPSTREAM" placeholder:"URL"`
	Mode      string   `help:"guard (default), observe (change nothing, count lost updates) or off." env:"OPTIMIST_MODE" placeholder:"MODE"`
	LogLevel  string   `help:"debug, info (default), warn or error." env:"OPTIMIST_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string   `help:"text (default) or json." env:"OPTIMIST_LOG_FORMAT" placeholder:"FORMAT"`
}

// load reads the configuration that file and flags make, with its rules compiled.
func (s *settings) load() (*config.Config, *rule.Set, error) {
	c, err := config.Load(s.Config, config.Overrides{Listen: s.Listen, Admin: s.Admin, Upstream: s.Upstream, Mode: s.Mode,
		LogLevel: s.LogLevel, LogFormat: s.LogFormat})
	if err != nil {
		return nil, nil, err
	}
	rules, err := rule.FromConfig(c)
	return c, rules, err
}

// warnings are all that is suspicious in a configuration that can be used, in the file's order.
func warnings(c *config.Config) config.Problems {
	found := append(append(config.Problems(nil), c.Warnings()...), rule.Lint(c)...)
	found.Sort()
	return found
}

// tell prints problems as compilers do: place and message, the line, a mark.
func tell(w io.Writer, problems []config.Problem) {
	for _, p := range problems {
		fmt.Fprintf(w, "%s\n%s", p, p.Excerpt())
	}
}

// badConfig turns what load returned into an exit with everything that is wrong.
func badConfig(w io.Writer, err error, status int) error {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return &exitError{status, "optimist: " + err.Error()}
	}
	tell(w, problems)
	n := 0
	for _, p := range problems {
		if p.Severity == config.Error {
			n++
		}
	}
	return &exitError{status, fmt.Sprintf("optimist: %s in the configuration", count(n, "mistake"))}
}

// count is a number with its word: 1 mistake, 2 mistakes.
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// logger is the log that the configuration asks for, and the switch of its level.
func logger(w io.Writer, c *config.Config) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(obs.Level(string(c.Log.Level)))
	return obs.Logger(w, c.Log.Format == config.LogJSON, level), level
}
