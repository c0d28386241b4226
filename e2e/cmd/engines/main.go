// Command engines starts real engines for tests and prints where they are, as lines NAME=URL, until it is interrupted; or it runs
// a command with those lines in its environment and ends with it. The engines are for tests only: they keep nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"optimist/e2e/engine"
)

const usage = `usage: engines [flags] [NAME...] [-- COMMAND [ARGUMENT...]]

Starts the named engines, or all: %s.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
	}
	os.Exit(code)
}

// request is the command line.
type request struct {
	prepare bool
	options engine.Options
	kinds   []engine.Kind
	command []string
}

// run does what the command line says and returns the exit status: that of the command, or 1 with an error, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	r, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return 2, err
	}
	if r.prepare {
		return status(prepare(ctx, r.kinds, stdout))
	}
	variables, stop, err := start(ctx, r, stderr)
	defer stop()
	if err != nil {
		return 1, err
	}
	if len(r.command) == 0 {
		fmt.Fprintln(stdout, strings.Join(variables, "\n"))
		<-ctx.Done()
		return 0, nil
	}
	return execute(ctx, r.command, variables, stdout, stderr)
}

func status(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func parse(args []string, stderr io.Writer) (request, error) {
	var r request
	if i := slices.Index(args, "--"); i >= 0 {
		args, r.command = args[:i], args[i+1:]
	}
	f := flag.NewFlagSet("engines", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&r.prepare, "prepare", false, "only fetch and build what the engines need, and say where it is")
	f.BoolVar(&r.options.Peak, "peak", false, "start the engines as benchmarks want them: slower to start, faster after that")
	f.StringVar(&r.options.Heap, "heap", "512m", "Java heap of each")
	f.Usage = func() {
		names := make([]string, 0, len(engine.All()))
		for _, k := range engine.All() {
			names = append(names, k.String())
		}
		fmt.Fprintf(stderr, usage, strings.Join(names, ", "))
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return request{}, err
	}
	for _, name := range f.Args() {
		k, ok := engine.ParseKind(name)
		if !ok {
			return request{}, fmt.Errorf("no engine is called %q", name)
		}
		r.kinds = append(r.kinds, k)
	}
	if len(r.kinds) == 0 {
		r.kinds = engine.All()
	}
	return r, nil
}

func prepare(ctx context.Context, kinds []engine.Kind, stdout io.Writer) error {
	for _, k := range kinds {
		dir, err := engine.Prepare(ctx, k)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%-22s %s\n", k.Title(), dir)
	}
	if len(kinds) < len(engine.All()) { // some that were named
		return nil
	}
	others := []struct {
		title   string
		prepare func(context.Context) (string, error)
	}{{"Kafka 4.1.0", engine.PrepareKafka}, {"ZooKeeper 3.9.3", engine.PrepareZooKeeper}, {"the Java client 9.5.3", engine.PrepareJavaClient}}
	for _, o := range others {
		dir, err := o.prepare(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%-22s %s\n", o.title, dir)
	}
	return nil
}

// start brings the engines up one after the other and returns their variables, and what stops those that are up, in any case.
// Together they would take as long: a start keeps two cores busy.
func start(ctx context.Context, r request, stderr io.Writer) ([]string, func(), error) {
	var variables []string
	var up []*engine.Engine
	stop := func() {
		for _, e := range up {
			if err := e.Stop(); err != nil {
				fmt.Fprintln(stderr, "engines:", err)
			}
		}
	}
	for _, k := range r.kinds {
		began := time.Now()
		e, err := engine.Start(ctx, k, r.options)
		if err != nil {
			return nil, stop, err
		}
		up = append(up, e)
		variables = append(variables, k.Env()+"="+e.URL)
		fmt.Fprintf(stderr, "%s is up after %.1f s (process %d)\n", k.Title(), time.Since(began).Seconds(), e.PID())
	}
	return variables, stop, nil
}

// commandTimeout is how long the command may take to end once it was told to.
const commandTimeout = 10 * time.Second

// execute runs the command in a process group of its own, because go test leaves the test binaries behind when it is ended.
func execute(ctx context.Context, command, variables []string, stdout, stderr io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = commandTimeout
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever of the group is left
		return 1, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return status(err)
}
