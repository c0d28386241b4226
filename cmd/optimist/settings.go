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
	Config           string `help:"Configuration file. Without one, the defaults apply." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	config.Overrides `embed:""`
}

// load reads the configuration that file and flags make, with its rules compiled.
func (s *settings) load() (*config.Config, *rule.Set, error) {
	return rule.Load(s.Config, s.Overrides)
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
