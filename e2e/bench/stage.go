package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// A stage is what an experiment runs on: a folder, and all that is started for the experiment.
type stage struct {
	dir  string
	ends []func()
}

// experiment runs an experiment on a stage of its own, and clears the stage.
func experiment(
	do func(ctx context.Context, s *stage, args []string, out io.Writer) error,
) func(ctx context.Context, args []string, out io.Writer) error {
	return func(ctx context.Context, args []string, out io.Writer) error {
		dir, err := os.MkdirTemp("", "bench-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s := &stage{dir: dir}
		defer func() {
			for _, end := range slices.Backward(s.ends) {
				end()
			}
		}()
		return do(ctx, s, args, out)
	}
}

// atEnd has the stage call end when the experiment is over, the last one first.
func (s *stage) atEnd(end func()) { s.ends = append(s.ends, end) }

// subfolder makes a folder for one program.
func (s *stage) subfolder() (string, error) { return os.MkdirTemp(s.dir, "") }

// startEngine starts the engine of that name, at its best.
func (s *stage) startEngine(ctx context.Context, kind, heap string) (url, title string, err error) {
	if kind == "embedded" {
		p, err := startSelf(ctx, "serve-embedded")
		if err != nil {
			return "", "", err
		}
		s.atEnd(p.end)
		return "http://" + p.addr, "the embedded engine", nil
	}
	k, known := engine.ParseKind(kind)
	if !known {
		return "", "", fmt.Errorf("no engine is called %q", kind)
	}
	e, err := engine.Start(ctx, k, engine.Options{Peak: true, Heap: heap})
	if err != nil {
		return "", "", err
	}
	s.atEnd(func() { _ = e.Stop() }) // what a benchmark leaves in a temporary folder is no failure of it
	return e.URL, k.Title(), nil
}

// startOptimist runs the real program: with Binary, one that was built before.
func (s *stage) startOptimist(ctx context.Context, o optimist.Options) (*optimist.Process, error) {
	dir, err := s.subfolder()
	if err != nil {
		return nil, err
	}
	p, err := optimist.Run(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s.atEnd(func() { _ = p.Stop() })
	return p, nil
}

// startNginx starts nginx before an engine. Its process is nil if it isn't installed.
func (s *stage) startNginx(ctx context.Context, engineURL string) (url string, p *process, err error) {
	binary, ok := find("nginx")
	if !ok {
		return "", nil, nil
	}
	dir, err := s.subfolder()
	if err != nil {
		return "", nil, err
	}
	if p, err = startNginx(ctx, binary, dir, hostOf(engineURL)); err != nil {
		return "", nil, err
	}
	s.atEnd(p.end)
	return "http://" + p.addr, p, nil
}
