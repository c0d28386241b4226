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
	folder, user := inImage(t, `ENV TMPDIR=(\S+)`), inImage(t, `USER (\S+)`)
	if owner := inImage(t, `COPY --from=build --chown=(\S+) /out/state `+regexp.QuoteMeta(folder)); owner != user {
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

// TestThePodFitsTheImage: a volume that the image's user can't write to, or that is at another place, keeps optimist from its files.
func TestThePodFitsTheImage(t *testing.T) {
	page, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, manifest, _ := strings.Cut(string(page), "```yml\napiVersion")
	manifest, _, _ = strings.Cut(manifest, "```")
	var deployment struct {
		Spec struct{ Template struct{ Spec pod } }
	}
	if err := yaml.NewDecoder(strings.NewReader("apiVersion" + manifest)).Decode(&deployment); err != nil {
		t.Fatal(err)
	}
	p := deployment.Spec.Template.Spec
	if len(p.Containers) != 1 {
		t.Fatalf("docs/deploying.md has no pod with a container: %+v", deployment)
	}
	c, folder, user := p.Containers[0], inImage(t, `ENV TMPDIR=(\S+)`), inImage(t, `USER (\d+):\d+`)
	if p.SecurityContext.FSGroup != user {
		t.Errorf("volumes belong to %s, and optimist runs as %s", p.SecurityContext.FSGroup, user)
	}
	mounted := slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return m.MountPath == folder })
	if !mounted || !slices.Contains(c.Env, variable{"STATE_DIRECTORY", folder}) {
		t.Errorf("the file system is read-only, and optimist writes to %s: %+v, %+v", folder, c.VolumeMounts, c.Env)
	}
	for _, e := range c.Env {
		if e.Name != "STATE_DIRECTORY" && !strings.Contains(help(t), "($"+e.Name+")") {
			t.Errorf("serve knows no variable %s", e.Name)
		}
	}
}

// pod is as much of Kubernetes' pod as the test looks at.
type pod struct {
	SecurityContext struct {
		FSGroup string `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Containers []struct {
		Env          []variable
		VolumeMounts []mount `yaml:"volumeMounts"`
	}
}

type variable struct{ Name, Value string }

type mount struct {
	MountPath string `yaml:"mountPath"`
}

func help(t *testing.T) string {
	t.Helper()
	_, stdout, _ := invoke(t, "serve", "--help")
	return stdout
}

// inImage is what the group of a pattern finds, which fits a line of the Dockerfile.
func inImage(t *testing.T, pattern string) string {
	t.Helper()
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindSubmatch(image)
	if m == nil {
		t.Fatalf("the image has no line %s", pattern)
	}
	return string(m[1])
}
