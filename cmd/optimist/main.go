// Command optimist is a reverse proxy that keeps concurrent writers of one document from erasing each other's changes in
// Elasticsearch and OpenSearch.
//
// This package is flags, wiring and signals; it decides nothing about requests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// commandLine lists the commands. The tags are what --help prints.
type commandLine struct {
	Serve   serveCmd   `cmd:"" help:"Run the proxy."`
	Demo    demoCmd    `cmd:"" help:"Show lost updates on an engine in memory, without optimist and with it."`
	Check   checkCmd   `cmd:"" help:"Check a configuration file: mistakes by line and column, or what its rules do."`
	Explain explainCmd `cmd:"" help:"Show what would happen to one write, and why, without writing it."`
	Test    testCmd    `cmd:"" help:"Run your own tests of your rules."`
	Doctor  doctorCmd  `cmd:"" help:"Ask a cluster what will work through optimist, and what won't. Writes nothing."`
	Mode    modeCmd    `cmd:"" help:"Show or change what a running optimist does with writes."`
	Suggest suggestCmd `cmd:"" help:"Print the rules that the conflicts of a running optimist suggest."`
	Hot     hotCmd     `cmd:"" help:"List the documents with the most conflicts."`
	Locks   locksCmd   `cmd:"" help:"Show who holds locks, and release locks that nobody else releases."`
	Undo    undoCmd    `cmd:"" help:"Show what was written under locks with undo, and isn't committed."`
	Letters lettersCmd `cmd:"" name:"dead-letters" help:"List, show, replay or delete the writes that could not be placed."`
	Version versionCmd `cmd:"" help:"Show the version of this program."`
}

const description = `A reverse proxy for Elasticsearch and OpenSearch that keeps concurrent writers of one document from
erasing each other's changes. Applications change their base URL, and nothing else.

Exit status of every command: 0 if it worked, 1 if it failed, 2 if it can't run as it was given.`

// run is the program: it reads args, does what they say, and returns the exit status. It ends early when ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli commandLine
	helped := false
	options := append(valueMappers(), kong.Name("optimist"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110, NoExpandSubcommands: true}))
	parser, err := kong.New(&cli, options...)
	if err != nil {
		fmt.Fprintf(stderr, "optimist: %v\n", err)
		return exitFailed
	}
	parser.Model.HelpFlag.Help = "Show this."
	parsed, err := parser.Parse(asFlags(args))
	switch {
	case helped && len(args) == 0:
		return exitUsage
	case helped:
		return exitOK
	}
	if err != nil {
		command := commandOf(err)
		fmt.Fprintf(stderr, "%s: %v\nRun `%s --help`.\n", command, err, command)
		return exitUsage
	}
	for _, warning := range misspelt(os.Environ(), parser.Model) {
		fmt.Fprintln(stderr, warning)
	}
	p := &process{ctx, &output{Writer: stdout}, stderr}
	err = parsed.Run(p)
	if failed := p.stdout.failure(); failed != nil { // whatever else became of the command
		err = failed
	}
	return ended(stderr, err)
}

// ended tells how a command ended, and returns the exit status.
func ended(stderr io.Writer, err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.text != "" {
			fmt.Fprintln(stderr, exit.text)
		}
		return exit.status
	}
	fmt.Fprintf(stderr, "optimist: %v\n", err)
	return exitFailed
}
