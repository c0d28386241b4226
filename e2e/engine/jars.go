package engine

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

//go:embed java
var sources embed.FS

// kit is what an engine needs to start: its jars and our launcher, built once and kept in the user's cache folder.
type kit struct {
	dir string
	jdk jdk
}

func (k kit) classPath() string {
	path := []string{filepath.Join(k.dir, "classes"), filepath.Join(k.dir, "lib", "*")}
	if exists(k.plugin()) { // a jar that both have is the engine's
		path = append(path, filepath.Join(k.plugin(), "*"))
	}
	return strings.Join(path, string(filepath.ListSeparator))
}

// plugin is the folder of a plugin that comes as a zip.
func (k kit) plugin() string { return filepath.Join(k.dir, "plugin") }

// home is the folder that Elasticsearch 9 takes modules and native libraries from.
func (k kit) home() string { return filepath.Join(k.dir, "home") }

// CacheDir is the folder that keeps the engines' jars between test runs.
func CacheDir() (string, error) {
	d, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(d, "optimist-engines"), nil
}

// Prepare fetches and builds what an engine needs, unless it is there, and returns its folder. Several processes may do so at
// once.
func Prepare(ctx context.Context, k Kind) (string, error) {
	kit, err := prepare(ctx, k)
	return kit.dir, err
}

func prepare(ctx context.Context, k Kind) (kit, error) {
	j, err := findJDK()
	if err != nil {
		return kit{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return kit{}, err
	}
	files, err := readSources(k)
	if err != nil {
		return kit{}, err
	}
	built := kit{dir: filepath.Join(cache, k.String()+"-"+files.hash()), jdk: j}
	if exists(built.dir) {
		return built, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return kit{}, err
	}
	unlock, err := lock(built.dir + ".lock")
	if err != nil {
		return kit{}, err
	}
	defer unlock()
	if exists(built.dir) { // another process was faster
		return built, nil
	}
	if err := build(ctx, files, built); err != nil {
		return kit{}, fmt.Errorf("preparing %s: %w", k.Title(), err)
	}
	return built, nil
}

// build makes the kit beside its final place and moves it there whole, so that a folder in the cache is always complete.
func build(ctx context.Context, files fileSet, k kit) error {
	mvn, err := findMaven()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(k.dir), "building-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is left there on success
	if err := files.write(tmp); err != nil {
		return err
	}
	b := builder{dir: tmp, jdk: k.jdk}
	b.run(ctx, mvn, "-B", "-q", "-C", "-f", "pom.xml", "dependency:copy-dependencies", "-DincludeScope=runtime",
		"-DoutputDirectory="+filepath.Join(tmp, "lib"))
	b.unpackPlugin(ctx)
	b.javac(ctx, "classes", ".", "lifeline")
	if files.has("modules/rest-root/plugin-descriptor.properties") {
		b.arrangeHome(ctx)
	}
	if b.err != nil {
		return b.err
	}
	return os.Rename(tmp, k.dir)
}

// builder runs the steps of a build until one fails.
type builder struct {
	dir string
	jdk jdk
	err error
}

func (b *builder) run(ctx context.Context, name string, args ...string) {
	if b.err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "JAVA_HOME="+b.jdk.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}

// unpackPlugin unpacks the zip among the jars, if there is one.
func (b *builder) unpackPlugin(ctx context.Context) {
	zips, _ := filepath.Glob(filepath.Join(b.dir, "lib", "*.zip")) // well formed
	for _, zip := range zips {
		b.run(ctx, b.jdk.tool("jar"), "--extract", "--file", zip, "--dir", "plugin")
		b.err = errors.Join(b.err, os.Remove(zip))
	}
}

// javac compiles the sources of some folders into another, for the oldest JDK that may run them later.
func (b *builder) javac(ctx context.Context, out string, folders ...string) {
	args := []string{"--release", fmt.Sprint(minJDK), "-cp", filepath.Join(b.dir, "lib", "*"), "-d", out}
	for _, f := range folders {
		m, _ := filepath.Glob(filepath.Join(b.dir, f, "*.java")) // well formed
		args = append(args, m...)
	}
	b.run(ctx, b.jdk.tool("javac"), args...)
}

// arrangeHome lays out the folder that Elasticsearch 9 starts from: modules, whose jars must not be on the class path as well,
// and the native library for compressed fields.
func (b *builder) arrangeHome(ctx context.Context) {
	b.javac(ctx, "rest-root-classes", "rest-root")
	b.run(ctx, b.jdk.tool("jar"), "cf", "modules/rest-root/rest-root.jar", "-C", "rest-root-classes", ".")
	if b.err != nil {
		return
	}
	var errs []error
	for _, pattern := range []string{"transport-netty4-*.jar", "netty-*.jar"} {
		jars, _ := filepath.Glob(filepath.Join(b.dir, "lib", pattern)) // well formed
		for _, jar := range jars {
			errs = append(errs, os.Rename(jar, filepath.Join(b.dir, "modules", "transport-netty4", filepath.Base(jar))))
		}
	}
	native, err := zstd()
	if err == nil {
		err = native.copyTo(filepath.Join(b.dir, "home"))
	}
	b.err = errors.Join(append(errs, err, os.Rename(filepath.Join(b.dir, "modules"), filepath.Join(b.dir, "home", "modules")))...)
}

// ErrNoZstd reports that the shared library libzstd, which Elasticsearch 9 compresses stored fields with, is not installed.
var ErrNoZstd = errors.New("libzstd not found")

// library is a native library and where Elasticsearch looks for it below its home.
type library struct{ path, place string }

func zstd() (library, error) {
	arch, triplet := "x64", "x86_64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		arch, triplet = "aarch64", "aarch64-linux-gnu"
	}
	l := library{place: "lib/platform/linux-" + arch + "/libzstd.so"}
	places := []string{"/usr/lib/" + triplet, "/lib/" + triplet, "/usr/lib64", "/usr/lib", "/usr/local/lib"}
	file := "libzstd.so.1"
	if runtime.GOOS == "darwin" {
		l.place = "lib/platform/darwin-" + arch + "/libzstd.dylib"
		places, file = []string{"/opt/homebrew/lib", "/usr/local/lib"}, "libzstd.dylib"
	}
	for _, dir := range places {
		if l.path = filepath.Join(dir, file); exists(l.path) {
			return l, nil
		}
	}
	return library{}, fmt.Errorf("%w: install it with\n\tapt-get install -y libzstd1    (macOS: brew install zstd)", ErrNoZstd)
}

func (l library) copyTo(home string) error {
	b, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(home, filepath.FromSlash(l.place)), b)
}

// fileSet is an engine's pom and sources, by path.
type fileSet map[string][]byte

// readSources returns the engine's own files, with its pom as pom.xml, and those of the launcher that all share.
func readSources(k Kind) (fileSet, error) {
	files := fileSet{}
	for _, folder := range []string{k.recipe().folder, "lifeline"} {
		root := path.Join("java", folder)
		err := fs.WalkDir(sources, root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := strings.TrimPrefix(p, root+"/")
			if folder == "lifeline" {
				name = "lifeline/" + name
			}
			files[name], err = sources.ReadFile(p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("sources of %s: %w", k.Title(), err)
		}
	}
	if pom := k.recipe().pom; pom != "" {
		files["pom.xml"] = files[pom]
	}
	return files, nil
}

func (f fileSet) has(name string) bool { return f[name] != nil }

// hash names a build by what goes into it: another pom or launcher is another folder.
func (f fileSet) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(f[name]), f[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func (f fileSet) write(dir string) error {
	for name, b := range f {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), b); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// lock waits until no other process holds the file, and returns what releases it.
func lock(name string) (func(), error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}
