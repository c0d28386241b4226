package deadletter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"optimist/internal/filelock"
	"optimist/internal/jsontext"
)

// Folder keeps each letter in a file of its own: it is written whole beside its place, and gets there by a rename, so that a file in
// the folder is always a letter. A letter that is deleted takes no room: nothing has to be rotated. The file's name says whether the letter
// is about to be moved, because a name can be changed on a full disk.
//
// One process has a folder for itself. Other proxies don't see its letters.
type Folder struct {
	dir   string
	limit int64

	mu       sync.Mutex
	lock     *os.File        // nil: it isn't open
	letters  map[string]kept // by id
	bytes    int64
	revision int64 // the last that was given out
}

// kept is a letter in a file, without its bodies.
type kept struct {
	*Letter
	revision int64
	size     int64
	leaving  bool // it may be in the store already
}

const (
	letterSuffix = ".json"
	leaveSuffix  = ".leaving"
	freshPrefix  = "new-"
)

// NewFolder returns a folder for letters of limit bytes together. It touches nothing on the disk before Open or the first Put, and has no
// letters until then. Close it.
func NewFolder(dir string, limit int64) *Folder {
	return &Folder{dir: dir, limit: limit, letters: map[string]kept{}}
}

// Exists reports whether there is such a folder on the disk: an earlier process may have left letters in it.
func (f *Folder) Exists() bool {
	_, err := os.Stat(f.dir)
	return err == nil
}

// Open opens the folder, unless it is open, and makes it if there is none. damaged are the files of letters that can't be read.
// filelock.ErrInUse reports that another process has it.
func (f *Folder) Open() (damaged []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

func (f *Folder) open() (damaged []string, err error) {
	if f.lock != nil {
		return nil, nil
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Take(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	clear(f.letters) // what an earlier try has read
	f.bytes = 0
	if damaged, err = f.read(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.lock = lock
	return damaged, nil
}

// read finds the letters that an earlier process has left. A file that was being written when that ended is nobody's letter.
func (f *Folder) read() (broken []string, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		id, isLetter := strings.CutSuffix(name, letterSuffix)
		if !isLetter {
			id, isLetter = strings.CutSuffix(name, leaveSuffix)
		}
		switch {
		case strings.HasPrefix(name, freshPrefix):
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
				return nil, err
			}
		case isLetter && validID(id):
			l, size, _ := readFile(id, filepath.Join(f.dir, name))
			if l.State == Damaged {
				broken = append(broken, name)
			}
			f.letters[id] = kept{leaving: strings.HasSuffix(name, leaveSuffix)}
			f.note(l, size)
		}
	}
	return broken, nil
}

// readFile reads a letter's file. A letter that can't be read is a damaged one.
func readFile(id, path string) (l *Letter, size int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return damaged(id, err), 0, err
	}
	return decodeAs(id, text), int64(len(text)), nil
}

// note keeps what is known of a letter that has been stored.
func (f *Folder) note(l *Letter, size int64) Revision {
	f.revision++
	was := f.letters[l.ID]
	f.bytes += size - was.size
	f.letters[l.ID] = kept{Letter: l.summary(), revision: f.revision, size: size, leaving: was.leaving}
	return Revision{n: f.revision}
}

// Close gives the folder to whoever opens it next.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// Held is how many letters are there, and their bytes.
func (f *Folder) Held() (letters int, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.letters), f.bytes
}

// path is where the file of a letter is. f.mu is held.
func (f *Folder) path(id string) string { return f.pathIf(id, f.letters[id].leaving) }

// pathIf is where the file of a letter is if the letter is leaving, or isn't.
func (f *Folder) pathIf(id string, leaving bool) string {
	if leaving {
		return filepath.Join(f.dir, id+leaveSuffix)
	}
	return filepath.Join(f.dir, id+letterSuffix)
}

// Leave notes, so that it outlives the process, that a letter is about to be moved to the store; or, with false, that it isn't there. It
// reports whether that was noted before.
func (f *Folder) Leave(id string, at Revision, leaving bool) (before bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.at(id, at); err != nil {
		return false, err
	}
	is := f.letters[id]
	if is.leaving == leaving {
		return leaving, nil
	}
	if err := os.Rename(f.path(id), f.pathIf(id, leaving)); err != nil {
		return is.leaving, fmt.Errorf("%w: %w", ErrStore, err)
	}
	is.leaving = leaving
	f.letters[id] = is
	if err := f.sync(); err != nil {
		return !leaving, fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return !leaving, nil
}

// isLeaving reports whether a letter may be in the store already.
func (f *Folder) isLeaving(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.letters[id].leaving
}

// Put implements Store.
func (f *Folder) Put(_ context.Context, l *Letter, in Revision) (Revision, error) {
	text, err := jsontext.Marshal(l)
	if err != nil {
		return Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.open(); err != nil {
		return Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	if err := f.at(l.ID, in); err != nil && (in != (Revision{}) || !errors.Is(err, ErrNoLetter)) {
		return Revision{}, err
	}
	if f.bytes-f.letters[l.ID].size+int64(len(text)) > f.limit {
		return Revision{}, ErrFull
	}
	if err := f.write(l.ID, text); err != nil {
		if errors.Is(err, ErrUnsure) && in == (Revision{}) {
			err = errors.Join(err, os.Remove(f.path(l.ID))) // its client is told that it isn't kept, and may repeat the write
		}
		return Revision{}, err
	}
	return f.note(l, int64(len(text))), nil
}

// at reports whether a letter is at a revision.
func (f *Folder) at(id string, want Revision) error {
	is, ok := f.letters[id]
	switch {
	case !ok:
		return ErrNoLetter
	case is.revision != want.n:
		return ErrTaken
	}
	return nil
}

// write puts a file into its place, so that it is there after a power cut, or isn't at all.
func (f *Folder) write(id string, text []byte) error {
	fresh, err := os.CreateTemp(f.dir, freshPrefix)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	_, err = fresh.Write(text)
	if err == nil {
		err = fresh.Sync()
	}
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), f.path(id))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, errors.Join(err, os.Remove(fresh.Name())))
	}
	if err := f.sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}

// sync brings the folder's own names to the disk.
func (f *Folder) sync() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements Store.
func (f *Folder) Get(_ context.Context, id string) (*Letter, Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is, ok := f.letters[id]
	if !ok {
		return nil, Revision{}, ErrNoLetter
	}
	l, _, err := readFile(id, f.path(id))
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed it
		f.forget(id)
		return nil, Revision{}, ErrNoLetter
	}
	if l.State == Damaged {
		is.Letter = l
		f.letters[id] = is
	}
	return l, Revision{n: is.revision}, nil
}

// List implements Store.
func (f *Folder) List(_ context.Context, q *Query) ([]*Letter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*Letter
	for _, l := range f.letters {
		if q.takes(l.Letter) {
			found = append(found, l.Letter)
		}
	}
	return q.page(found), nil
}

func (f *Folder) forget(id string) {
	f.bytes -= f.letters[id].size
	delete(f.letters, id)
}

// Delete implements Store.
func (f *Folder) Delete(_ context.Context, id string, at Revision) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.at(id, at); err != nil {
		return err
	}
	if err := os.Remove(f.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	f.forget(id)
	if err := f.sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}
