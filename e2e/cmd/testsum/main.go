// Command testsum reads the output of go test -json. It prints the output of failed tests, and one line of totals. It does not
// run anything; its exit status is 1 if a test failed.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	os.Exit(code)
}

// run summarises the files together. With -totals first it prints only the line of totals.
func run(args []string, stdout io.Writer) (int, error) {
	totals := len(args) > 0 && args[0] == "-totals"
	if totals {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2, fmt.Errorf("usage: testsum [-totals] FILE")
	}
	var all summary
	for _, name := range args {
		s, err := readFile(name)
		if err != nil {
			return 2, err
		}
		all.add(s)
	}
	if !totals {
		for _, f := range all.failures {
			fmt.Fprintf(stdout, "--- FAIL: %s\n%s", f.name, f.output)
		}
	}
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n", all.passed, all.failed, all.skipped)
	if all.failed > 0 {
		return 1, nil
	}
	return 0, nil
}

func readFile(name string) (summary, error) {
	f, err := os.Open(name)
	if err != nil {
		return summary{}, err
	}
	defer func() { _ = f.Close() }() // only read
	s, err := read(f)
	if err != nil {
		return summary{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}
