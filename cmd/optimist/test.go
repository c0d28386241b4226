package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"optimist/internal/config"
	"optimist/internal/ruletest"
)

type testCmd struct {
	Files   []string `arg:"" optional:"" name:"testfile" help:"Files of tests. Default: *.test.yaml beside the configuration and rule files."`
	Config  string   `required:"" help:"Configuration file with the rules." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	JUnit   string   `name:"junit" help:"Write the results to this file, as JUnit XML." placeholder:"FILE"`
	Verbose bool     `short:"v" help:"Print for each write how optimist decided."`
}

// Help is the command's manual, beyond its flags.
func (testCmd) Help() string {
	return `Each test puts a document into an engine in memory, lets clients read and write it through optimist, and compares
the stored document and the answer with the expected ones:

  tests:
    - name: two buyers
      request: PUT /shop/_doc/1
      base:    {stock: 10}
      sent:    {stock: 9}
      current: {stock: 7}
      expect:  {document: {stock: 6}, outcome: merged}

docs/testing-rules.md lists all keys of a test.

Exit status: 0 if all tests pass, 1 if not, 2 if there are none.`
}

// Run runs the tests and prints.
func (c *testCmd) Run(p *process) error {
	cfg, rules, err := (&settings{Config: c.Config}).load()
	if err != nil {
		return badConfig(p.stderr, err, exitFailed)
	}
	names := c.Files
	if len(names) == 0 {
		if names = besides(c.Config); len(names) == 0 {
			return usageError("optimist test: there is no *.test.yaml in the folder of %s; name the files of tests", c.Config)
		}
	}
	files, err := loadTests(p, names)
	if err != nil {
		return err
	}
	runner, begun := &ruletest.Runner{Config: cfg, Rules: rules}, time.Now()
	defer runner.Close()
	report := new(ruletest.Report)
	for _, f := range files {
		for i := range f.Tests {
			r := runner.Run(p.ctx, f, &f.Tests[i])
			report.Results = append(report.Results, r)
			if err := ruletest.WriteResult(p.stdout, r, c.Verbose); err != nil {
				return err
			}
		}
	}
	report.Took = time.Since(begun)
	if err := c.writeJUnit(report); err != nil {
		return err
	}
	if err := report.WriteSummary(p.stdout); err != nil {
		return err
	}
	if report.Failed() > 0 {
		return &exitError{status: exitFailed}
	}
	return nil
}

// loadTests reads all files, and tells what is wrong in all of them.
func loadTests(p *process, names []string) ([]*ruletest.File, error) {
	var files []*ruletest.File
	mistakes := 0
	for _, name := range names {
		f, err := ruletest.Load(name)
		var problems config.Problems
		switch {
		case errors.As(err, &problems):
			tell(p.stderr, problems)
			mistakes += len(problems)
		case err != nil:
			return nil, err
		default:
			files = append(files, f)
		}
	}
	if mistakes > 0 {
		return nil, &exitError{exitFailed, fmt.Sprintf("optimist: %s in the tests; no test was run", count(mistakes, "mistake"))}
	}
	return files, nil
}

// besides are the files of tests in the folders of the configuration and its rule files.
func besides(name string) []string {
	files, _ := config.Files(name)
	var folders, found []string
	for _, f := range files {
		if dir := filepath.Dir(f); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for _, dir := range folders {
		for _, pattern := range []string{"*.test.yaml", "*.test.yml"} {
			in, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern isn't bad
			found = append(found, in...)
		}
	}
	return found
}

func (c *testCmd) writeJUnit(r *ruletest.Report) (err error) {
	if c.JUnit == "" {
		return nil
	}
	f, err := os.Create(c.JUnit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.WriteJUnit(f)
}
