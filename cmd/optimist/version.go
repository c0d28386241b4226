package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"optimist/internal/obs"
)

type versionCmd struct{}

// Run prints the version, the revision and what it was built with.
func (versionCmd) Run(p *process) error {
	b := build()
	fmt.Fprintf(p.stdout, "optimist %s (revision %s, %s, %s/%s)\n", b.Version, b.Revision, b.Go, runtime.GOOS, runtime.GOARCH)
	return nil
}

// build is what the compiler wrote into the program: the version is the tag that it was built from.
func build() obs.Build {
	b := obs.Build{Version: "devel", Revision: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Revision += " with changes"
		}
	}
	return b
}
