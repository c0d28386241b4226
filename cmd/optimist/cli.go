package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit statuses. They are part of what scripts build on.
const (
	exitOK     = 0
	exitFailed = 1 // it was tried, and something is wrong: an engine, a port in use, a file that was to be checked
	exitUsage  = 2 // nothing was tried: the command line makes no sense, lacks what has no default, or names a configuration with mistakes
)

// exitError ends a command with a status. Its text goes to standard error as it is.
type exitError struct {
	status int
	text   string
}

func (e *exitError) Error() string { return e.text }

// usageError is what a command that can't be tried ends with.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// commandLine is what can be said on the command line. The tags are its manual.
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

// process is what a command has of the world.
type process struct {
	ctx            context.Context // ends when the program is to end
	stdout, stderr io.Writer
}

const description = `A reverse proxy for Elasticsearch and OpenSearch that keeps concurrent writers of one document from
erasing each other's changes. Applications change their base URL, and nothing else.`

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
	err = parsed.Run(&process{ctx, stdout, stderr})
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

// asFlags is args with the flag in place of what some write for it: help and version are commands of many programs, and a command line
// without a command asks what there is.
func asFlags(args []string) []string {
	switch {
	case len(args) == 0 || slices.Equal(args, []string{"help", "help"}):
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case slices.Equal(args, []string{"--version"}):
		return []string{"version"}
	}
	return args
}

// commandOf is the program and the command that a mistake on the command line belongs to, as in "optimist locks rm".
func commandOf(err error) string {
	var names []string
	var parsing *kong.ParseError
	if errors.As(err, &parsing) {
		for node := parsing.Context.Selected(); node != nil && node.Parent != nil; node = node.Parent {
			names = append(names, node.Name)
		}
	}
	names = append(names, "optimist")
	slices.Reverse(names)
	return strings.Join(names, " ")
}
