// Command bench measures what optimist costs beside other proxies, on this machine, all sides in one run.
//
// It promises ratios of one run, not absolute figures: engine, load and proxy share the processors.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// command is one thing that bench can do. Those that start with "serve-" are processes that the experiments start.
type command struct {
	name string
	what string
	run  func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"passthrough", "CPU of a proxy process per forwarded request, beside other proxies", experiment(passthrough)},
		{"guarded", "CPU of optimist per guarded write, beside proxies that forward the same without a guard", experiment(guarded)},
		{"application", "an application that knows nothing of versions, straight at an engine and through optimist", experiment(application)},
		{"locks", "locks through optimist, beside ZooKeeper, memcached and a loop that polls the engine", experiment(locks)},
		{"bulk", "bulks through optimist, beside nginx: how long they take, and CPU per item", experiment(bulk)},
		{"held", "writes where locks are enforced, and under a lock with undo, beside writes that are only guarded", experiment(held)},
		{"search", "a search that optimist watches, beside one that it passes on", experiment(searches)},
		{"inference", "simulated clients that don't say which read a write was made from: how often it is found out", infer},
		{"serve-embedded", "the embedded engine", serveEmbedded},
		{"serve-stub", "a stub of the engine: one small JSON answer to everything", serveStub},
		{"serve-engine-stub", "a stub of the engine whose reads and writes can be guarded", serveEngineStub},
		{"serve-proxy", "optimist's door alone, forwarding everything", serveProxy},
		{"serve-fasthttp", "a bare forwarder on fasthttp's server and client", serveFasthttp},
		{"serve-reverseproxy", "net/http/httputil.ReverseProxy", serveReverseProxy},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return usage()
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], out)
		}
	}
	return fmt.Errorf("unknown command %q\n%w", args[0], usage())
}

func usage() error {
	var b strings.Builder
	b.WriteString("usage: bench COMMAND [flags]\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-20s %s\n", c.name, c.what)
	}
	return fmt.Errorf("%s", strings.TrimRight(b.String(), "\n"))
}
