package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/demo"
	"optimist/internal/rule"
)

// demoCmd takes no variables: OPTIMIST_UPSTREAM is set where optimist serves, and a demonstration writes only where it is told to.
type demoCmd struct {
	Once     bool   `help:"End after the table. Status 1 if changes were lost through optimist."`
	Upstream string `help:"Run on this engine, in an index of its own that is deleted in the end. Default: in memory." placeholder:"URL"`
	Workers  int    `help:"Number of workers." default:"16"`
	Rounds   int    `help:"How often each worker reads and writes." default:"50"`
}

// Help is the command's manual, beyond its flags.
func (demoCmd) Help() string {
	return `Sixteen workers of an application read a document, change it, and write it back. They don't use versions. First they
write to the engine, then through optimist. The table shows how many acknowledged changes are lost. Then the
demo goes on serving, and prints requests to try.

Exit status: 0 after the table; 1 if changes were lost through optimist, or the demo ended before the table.`
}

// Run gives the demonstration until it is over, or interrupted.
func (c *demoCmd) Run(p *process) error {
	if c.Workers < 1 || c.Rounds < 1 {
		return usageError("optimist demo: --workers and --rounds are 1 or more")
	}
	u, err := url.Parse(c.Upstream)
	if c.Upstream != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		return usageError("optimist demo: %q is not a URL of an engine; write it as in http://127.0.0.1:9200, without a user",
			config.Redact(c.Upstream))
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(p.ctx, ends...)
	defer stop()
	// An output without a reader (optimist demo | head) ends the demo as a signal does, so that the index is deleted, too. The system's own
	// signal would end the process. It also comes from a connection that a client has closed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, end := context.WithCancel(ctx)
	defer end()
	return demo.Run(ctx, demo.Options{
		Optimist: p.optimist, Upstream: c.Upstream, Once: c.Once, Workers: c.Workers, Rounds: c.Rounds, Terminal: terminal(p.stdout.Writer),
	}, &endingWriter{p.stdout, end})
}

// endingWriter calls end if nobody reads any more what is written.
type endingWriter struct {
	io.Writer
	end func()
}

func (w *endingWriter) Write(text []byte) (n int, err error) {
	if n, err = w.Writer.Write(text); err != nil {
		w.end()
	}
	return n, err
}

// optimist serves in this process, for the demonstration.
func (p *process) optimist(_ context.Context, c *config.Config) (url string, stop func() error, err error) {
	rules, err := rule.FromConfig(c)
	if err != nil {
		return "", nil, err
	}
	log, _ := logger(p.stderr, c)
	a, err := app.New(app.Options{Config: c, Rules: rules, Build: build(), Log: log})
	if err != nil {
		return "", nil, err
	}
	a.Serve()
	return a.URL(), func() error { a.Close(); return nil }, nil
}

// terminal reports whether something is shown to a person as it is written.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
