package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestTheImageHasATemporaryFolder that its user may write to, also where compose makes the rest read-only. An image from scratch has no /tmp.
func TestTheImageHasATemporaryFolder(t *testing.T) {
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindSubmatch(image)
		if m == nil {
			t.Fatalf("the image has no line %s", pattern)
		}
		return string(m[1])
	}
	folder, user := find(`ENV TMPDIR=(\S+)`), find(`USER (\S+)`)
	if owner := find(`COPY --from=build --chown=(\S+) /out/state ` + regexp.QuoteMeta(folder)); owner != user {
		t.Errorf("%s is of %s, and optimist runs as %s", folder, owner, user)
	}

	text, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			ReadOnly bool `yaml:"read_only"`
			Volumes  []string
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	s := compose.Services["optimist"]
	mounted := slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+folder) })
	if s.ReadOnly && !mounted {
		t.Errorf("compose.yaml makes the file system read-only, and mounts nothing at %s: %q", folder, s.Volumes)
	}
}
