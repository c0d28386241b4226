package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"optimist/e2e/bench/inference"
)

// infer counts how often the base of a write is found out whose client doesn't say what it has read.
func infer(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("inference", flag.ContinueOnError)
	shapes := fs.String("shapes", "", "only documents whose name contains one of these, with semicolons between them")
	conditions := fs.String("conditions", "", "only conditions whose name contains one of these, with semicolons between them")
	changes := fs.Int("changes", 320, "how many changes a run makes, at least")
	seeds := fs.Int("seeds", 4, "how many runs each row is made of")
	if err := fs.Parse(args); err != nil {
		return err
	}
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ';' }) }
	return inference.Table(out, inference.Options{
		Shapes: split(*shapes), Conditions: split(*conditions), Changes: *changes, Seeds: *seeds,
	})
}
