package optimist

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// BinaryEnv names a binary that is to be used instead of one built from this tree.
const BinaryEnv = "OPTIMIST_E2E_BINARY"

// Each is built once a process: several tests ask for it, and building takes seconds.
var (
	plain  = sync.OnceValues(func() (string, error) { return build(context.Background(), false) })
	racing = sync.OnceValues(func() (string, error) { return build(context.Background(), true) })
)

// Binary returns the path of the program under test, built from this tree unless BinaryEnv names another; with the race detector if it
// is asked for, whether the tests themselves have it or not. The compiler's cache makes all but the first process quick.
func Binary(race bool) (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return path, nil
	}
	if race {
		return racing()
	}
	return plain()
}

func build(ctx context.Context, race bool) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("folder for the binary: %w", err)
	}
	tree, err := checkout()
	if err != nil {
		return "", fmt.Errorf("folder for the binary: %w", err)
	}
	// Each checkout has its own: tests of two at a time must not run each other's program.
	dir := filepath.Join(cache, "optimist-e2e", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(tree))), 36))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("folder for the binary: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, "optimist")
	args := []string{"build"}
	if race {
		path += "-race"
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", path, "optimist/cmd/optimist")...)
	cmd.Dir = tree // the benchmarks are a module of their own, which hasn't what the program is made of
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building optimist: %w\n%s", err, out)
	}
	return path, nil
}

// checkout is the folder of the product's module, in or below which the process runs.
func checkout() (string, error) {
	at, err := os.Getwd()
	for ; err == nil; at = filepath.Dir(at) {
		if _, missing := os.Stat(filepath.Join(at, "cmd", "optimist", "main.go")); missing == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			err = errors.New("this is no folder of optimist's source")
		}
	}
	return "", err
}

// lock waits for the file's lock: test binaries of several packages build at the same time, into one file.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the binary: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock of the binary: %w", err)
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}
