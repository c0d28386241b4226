package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeJDK makes a folder that looks like a JDK of the version, without the named tools.
func fakeJDK(t *testing.T, version string, without ...string) string {
	t.Helper()
	home := t.TempDir()
	files := map[string]string{
		"release":  fmt.Sprintf("IMPLEMENTOR=\"Somebody\"\nJAVA_VERSION=%q\nOS_NAME=\"Linux\"\n", version),
		"bin/java": "", "bin/javac": "", "bin/jar": "",
	}
	for _, name := range without {
		delete(files, name)
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(home, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func TestJDKIsPickedByVersionNotByPlace(t *testing.T) {
	t.Parallel()
	old, lts, newest := fakeJDK(t, "17.0.15"), fakeJDK(t, "21.0.2"), fakeJDK(t, "26")
	eight, jre := fakeJDK(t, "1.8.0_402"), fakeJDK(t, "21.0.2", "bin/javac")
	for name, c := range map[string]struct {
		preferred string
		homes     []string
		want      string
	}{
		"the preferred one, if it is fit":     {newest, []string{lts}, newest},
		"not the preferred one, if too old":   {old, []string{newest}, newest},
		"the oldest of those that are fit":    {"", []string{newest, old, lts}, lts},
		"one with a compiler":                 {jre, []string{jre, newest}, newest},
		"none of the old numbering":           {"", []string{eight, newest}, newest},
		"none of a folder that isn't there":   {filepath.Join(old, "gone"), []string{lts}, lts},
		"one without a release file is none":  {fakeJDK(t, "25", "release"), []string{lts}, lts},
		"a preferred one of any later number": {newest, nil, newest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := pickJDK(c.preferred, c.homes)
			if err != nil || got.home != c.want {
				t.Errorf("picked %s (%v), want %s", got.home, err, c.want)
			}
		})
	}
}

func TestMissingJDKNamesTheCommandThatInstallsOne(t *testing.T) {
	t.Parallel()
	_, err := pickJDK("", []string{fakeJDK(t, "17.0.15")})
	if !errors.Is(err, ErrNoJDK) || !strings.Contains(err.Error(), "install") {
		t.Errorf("error is %v", err)
	}
}

func TestMissingMavenNamesTheCommandThatInstallsIt(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "apt-get"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	_, err := findMaven()
	if !errors.Is(err, ErrNoMaven) || !strings.Contains(err.Error(), "apt-get install -y maven") {
		t.Errorf("error is %v", err)
	}
}

func TestHashOfABuildChangesWithEveryFile(t *testing.T) {
	t.Parallel()
	seen := map[string]Kind{}
	for _, k := range All() {
		files, err := readSources(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"pom.xml", "lifeline/Lifeline.java"} {
			if files[name] == nil {
				t.Fatalf("%s has no %s", k, name)
			}
			seen[files.hash()] = k
			files[name] = append(files[name], '\n')
		}
		seen[files.hash()] = k
	}
	if want := 3 * len(All()); len(seen) != want {
		t.Errorf("%d hashes of %d builds", len(seen), want)
	}
}
