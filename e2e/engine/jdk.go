package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// minJDK is the oldest JDK that all engines run on: OpenSearch 3 and Elasticsearch 9 want 21, and Elasticsearch 7.10 takes it.
const minJDK = 21

// ErrNoJDK reports that no JDK of version 21 or later is installed. The error that wraps it names the command that installs one.
var ErrNoJDK = errors.New("no JDK of version 21 or later found")

// ErrNoMaven reports that mvn is not on the PATH. The error that wraps it names the command that installs it.
var ErrNoMaven = errors.New("mvn (Apache Maven) not found")

// jdk is an installed Java Development Kit.
type jdk struct {
	home    string
	version int // the feature release: 21, 25
}

func (j jdk) tool(name string) string { return filepath.Join(j.home, "bin", name) }

// findJDK returns the JDK of JAVA_HOME if it is fit, else the best of those that it finds.
func findJDK() (jdk, error) { return pickJDK(os.Getenv("JAVA_HOME"), jdkHomes()) }

// pickJDK takes the preferred JDK if it is fit; else, of all that are, the one closest to the release that the engines were
// built for, because a newer Java takes away what an old engine uses.
func pickJDK(preferred string, homes []string) (jdk, error) {
	if j, ok := inspectJDK(preferred); ok && j.version >= minJDK {
		return j, nil
	}
	var found []jdk
	for _, home := range homes {
		if j, ok := inspectJDK(home); ok && j.version >= minJDK {
			found = append(found, j)
		}
	}
	if len(found) == 0 {
		return jdk{}, fmt.Errorf("%w: install one with\n\t%s\nor set JAVA_HOME to one that is there", ErrNoJDK, installJDK())
	}
	return slices.MinFunc(found, func(a, b jdk) int { return a.version - b.version }), nil
}

// Variables such as JAVA21_HOME, JAVA_21_HOME, JAVA_HOME_21 and JAVA_HOME_21_X64, as build machines set them.
var jdkVariable = regexp.MustCompile(`^(JAVA_?\d+_HOME|JAVA_HOME_\d+\w*|JDK_?\d*_?HOME)=(.+)$`)

// jdkHomes lists folders that may hold a JDK, from the environment, the PATH and where installers put them.
func jdkHomes() []string {
	var homes []string
	for _, kv := range os.Environ() {
		if m := jdkVariable.FindStringSubmatch(kv); m != nil {
			homes = append(homes, m[2])
		}
	}
	if javac, err := exec.LookPath("javac"); err == nil {
		if real, err := filepath.EvalSymlinks(javac); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(real)))
		}
	}
	patterns := []string{
		"/usr/lib/jvm/*", "/usr/lib64/jvm/*", "/usr/java/*", "/opt/java/*", "/opt/jdk*",
		"/Library/Java/JavaVirtualMachines/*/Contents/Home",
		"/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
		"/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
	}
	if user, err := os.UserHomeDir(); err == nil {
		patterns = append(patterns,
			filepath.Join(user, ".sdkman/candidates/java/*"),
			filepath.Join(user, ".jdks/*"),
			filepath.Join(user, ".local/share/mise/installs/java/*"),
			filepath.Join(user, ".asdf/installs/java/*"),
			filepath.Join(user, "Library/Java/JavaVirtualMachines/*/Contents/Home"))
	}
	for _, p := range patterns {
		m, _ := filepath.Glob(p) // the patterns are ours: they are well formed
		homes = append(homes, m...)
	}
	return homes
}

var releaseVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="?(?:1\.)?(\d+)`)

// inspectJDK reads the version of the JDK in home. A folder without a compiler (a JRE) is none.
func inspectJDK(home string) (jdk, bool) {
	if home == "" {
		return jdk{}, false
	}
	j := jdk{home: home}
	for _, tool := range []string{"java", "javac", "jar"} {
		if s, err := os.Stat(j.tool(tool)); err != nil || s.IsDir() {
			return jdk{}, false
		}
	}
	release, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return jdk{}, false
	}
	m := releaseVersion.FindSubmatch(release)
	if m == nil {
		return jdk{}, false
	}
	j.version, err = strconv.Atoi(string(m[1]))
	return j, err == nil
}

// findMaven returns the path of mvn.
func findMaven() (string, error) {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: install it with\n\t%s", ErrNoMaven, installPackages("maven"))
	}
	return mvn, nil
}

// installTemurin is for Debian 12 and older, which have no JDK 21.
const installTemurin = `apt-get update && apt-get install -y temurin-21-jdk
after adding the package source of the Eclipse Temurin builds as that project describes it: this system's own has no JDK that is
new enough,`

func installJDK() string {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return installPackages("jdk")
	}
	ctx := context.Background()
	for _, p := range []string{"openjdk-21-jdk-headless", "openjdk-25-jdk-headless", "temurin-21-jdk", "temurin-25-jdk"} {
		if exec.CommandContext(ctx, "apt-cache", "show", p).Run() == nil {
			return "apt-get install -y " + p
		}
	}
	return installTemurin
}

// installPackages is the command of this system's package manager for "jdk" or "maven".
func installPackages(what string) string {
	managers := []struct{ tool, jdk, maven string }{
		{"apt-get", "apt-get install -y openjdk-21-jdk-headless", "apt-get install -y maven"},
		{"dnf", "dnf install -y java-21-openjdk-devel", "dnf install -y maven"},
		{"apk", "apk add openjdk21-jdk", "apk add maven"},
		{"pacman", "pacman -S --noconfirm jdk21-openjdk", "pacman -S --noconfirm maven"},
		{"zypper", "zypper install -y java-21-openjdk-devel", "zypper install -y maven"},
		{"brew", "brew install openjdk@21", "brew install maven"},
	}
	for _, m := range managers {
		if _, err := exec.LookPath(m.tool); err != nil {
			continue
		}
		if what == "maven" {
			return m.maven
		}
		return m.jdk
	}
	return "(no known package manager: take the " + strings.ToUpper(what) + " for " + runtime.GOOS + " from its project)"
}
