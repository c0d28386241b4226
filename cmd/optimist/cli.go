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
	exitFailed = 1 // the command ran and failed: the engine doesn't answer, a port is in use, the checked file has mistakes
	exitUsage  = 2 // the command didn't run: the command line is wrong or incomplete, or the configuration has mistakes
)

// exitError ends a command with a status. Its text goes to standard error as it is.
type exitError struct {
	status int
	text   string
}

func (e *exitError) Error() string { return e.text }

// usageError returns the error of a command that can't run as it was given.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// process is what each command gets: when to end, and where to print.
type process struct {
	ctx    context.Context // ends when the program is to end
	stdout *output
	stderr io.Writer
}

// asFlags rewrites what users type for help and version in other programs: "help", "help serve", "--version", or nothing at all.
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

// commandOf returns the command that a mistake on the command line belongs to, as in "optimist locks rm".
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
