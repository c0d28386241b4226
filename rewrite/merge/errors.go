package merge

import (
	"fmt"
	"strings"

	"optimist/rewrite/tree"
)

// A ConflictError reports values that the client and another client both changed, at paths whose strategy is Fail, or can't be applied to
// the values (a sum of strings). Nothing was merged.
type ConflictError struct {
	Paths []string // JSON Pointers into current, or else into sent, or else into the base; at most MaxPaths
	More  int      // how many there were beyond Paths
}

func (e *ConflictError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(" and %d more", e.More)
	}
	return "both sides changed " + strings.Join(e.Paths, ", ") + more
}

// A RuleError reports a PathRule, or a default strategy, that New can't take.
type RuleError struct {
	Path   string // of the rule; empty for the default strategy
	Reason string
}

func (e *RuleError) Error() string {
	if e.Path == "" {
		return "merge default: " + e.Reason
	}
	return fmt.Sprintf("merge path %q: %s", e.Path, e.Reason)
}

// MaxPaths bounds how many paths a Result or a ConflictError names.
const MaxPaths = 100

// maxPathBytes bounds each of them.
const maxPathBytes = 4096

// pathList collects the paths that a Result or an error names.
type pathList struct {
	paths []string
	more  int
}

func (l *pathList) add(trail tree.Trail) {
	if len(l.paths) >= MaxPaths {
		l.more++
		return
	}
	p := trail.Pointer(maxPathBytes)
	if n := len(l.paths); n == 0 || l.paths[n-1] != p {
		l.paths = append(l.paths, p)
	}
}
