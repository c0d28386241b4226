package secure

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/obs"
)

// lookEvery is how often files are looked at, at most: a certificate that was renewed counts a second later.
const lookEvery = time.Second

// maxFile bounds what is read of a file, so that a wrong name doesn't fill the memory.
const maxFile = 4 << 20

// followed is what was made of some files. It is made anew when their content changes. Nothing runs beside: whoever needs the value
// looks at the files, at most once every lookEvery. While the new files can't be used, for example because only one of two has been
// replaced yet, the old value counts, and the log says so.
type followed[T any] struct {
	names []string
	parse func(files [][]byte) (T, error)
	log   *slog.Logger
	now   func() time.Time

	value atomic.Pointer[T]

	mu      sync.Mutex        // who has it looks at the files
	content [sha256.Size]byte // what value was made of, or the last that couldn't be used
	looked  time.Time
	failure string // the last one, so that the log has each once
}

// Follow reads files, and gives what parse makes of them. get gives what their content is now: a file that changes counts within a second.
// While changed files can't be used, the old ones count, and the log, which may be nil, says so. A name that is empty stands for an empty
// file. The error says which file can't be used, and why.
func Follow[T any](log *slog.Logger, parse func(files [][]byte) (T, error), names ...string) (get func() T, err error) {
	f, err := follow(log, nil, parse, names...)
	if err != nil {
		return nil, err
	}
	return f.get, nil
}

// follow is Follow with a clock. log and now may be nil.
func follow[T any](log *slog.Logger, now func() time.Time, parse func(files [][]byte) (T, error), names ...string) (*followed[T], error) {
	f := &followed[T]{names: names, parse: parse, log: cmp.Or(log, slog.New(slog.DiscardHandler)), now: now}
	if now == nil {
		f.now = time.Now
	}
	return f, f.start()
}

// start reads the files for the first time. The error says which can't be used, and why.
func (f *followed[T]) start() error {
	files, content, err := f.read()
	if err != nil {
		return err
	}
	value, err := f.parse(files)
	f.value.Store(&value)
	f.content, f.looked = content, f.now()
	return err
}

// get returns what the files say now. One caller at a time looks at them. The others don't wait for it: the files may be on a disk that
// doesn't answer.
func (f *followed[T]) get() T {
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		if now := f.now(); now.Sub(f.looked) >= lookEvery {
			f.looked = now
			f.look()
		}
	}
	return *f.value.Load()
}

func (f *followed[T]) look() {
	files, content, err := f.read()
	if err == nil && content == f.content {
		return
	}
	var next T
	if err == nil {
		f.content = content
		next, err = f.parse(files)
	}
	if err != nil {
		if f.failure != err.Error() {
			f.failure = err.Error()
			f.log.Error("changed files can't be used: the old ones count", obs.KeyError, f.failure)
		}
		return
	}
	f.value.Store(&next)
	f.failure = ""
	named := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return name == "" })
	f.log.Info("changed files are in force", "files", named)
}

// read reads all files. Names that are empty stand for files that aren't there.
func (f *followed[T]) read() (files [][]byte, content [sha256.Size]byte, err error) {
	digest := sha256.New()
	for _, name := range f.names {
		var data []byte
		if name != "" {
			if data, err = readFile(name); err != nil {
				return nil, content, err
			}
		}
		files = append(files, data)
		sum := sha256.Sum256(data)
		digest.Write(sum[:])
	}
	return files, [sha256.Size]byte(digest.Sum(nil)), nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is too large for a certificate, a key or a token", name)
	}
	return os.ReadFile(name)
}
