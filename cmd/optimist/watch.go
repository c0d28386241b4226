package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"optimist/internal/config"
)

// settle is how long a file must be left alone to be looked at, and the time between two looks: editors and orchestrators change files in
// several steps.
const settle = 100 * time.Millisecond

// missing is how long a file must be away, or unreadable, until that counts as a change: who replaces a file may take it away first.
const missing = 3 * time.Second

// watch tells of changes of a configuration's content since its call: of the file itself, and of those that its rule_files name. It
// watches folders, because files are replaced by renaming others, and in a Kubernetes ConfigMap by turning a symbolic link elsewhere in
// the folder. stop ends it. Without a name, or with an error, nothing is ever told.
func watch(name string) (changes <-chan struct{}, stop func(), err error) {
	changed := make(chan struct{}, 1)
	if name == "" {
		return changed, func() {}, nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return changed, func() {}, err
	}
	if err := w.Add(filepath.Dir(name)); err != nil {
		_ = w.Close() // the other error says what is wrong
		return changed, func() {}, err
	}
	f := &follower{name: name, watcher: w, changes: changed, folders: map[string]bool{filepath.Dir(name): true}}
	f.last = f.content()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.follow()
	}()
	return changed, func() {
		_ = w.Close() // it ends the loop; there is nothing to lose
		<-done
	}, nil
}

// follower looks at a configuration's files whenever something happens in their folders.
type follower struct {
	name    string
	watcher *fsnotify.Watcher
	folders map[string]bool   // that are watched
	last    [sha256.Size]byte // what was told
	seen    [sha256.Size]byte // at the last look: a change is told when a second look finds the same
	changes chan<- struct{}
}

func (f *follower) follow() {
	var look, gone <-chan time.Time // when the files are looked at, and told to be gone; nil: not yet
	for {
		select {
		case e, ok := <-f.watcher.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				delete(f.folders, e.Name) // one that is made anew is watched anew
			}
			look = orAfter(look, settle)
		case _, ok := <-f.watcher.Errors: // events were dropped: look as if there had been one
			if !ok {
				return
			}
			look = orAfter(look, settle)
		case <-look:
			look = nil
			now := f.content()
			if now == ([sha256.Size]byte{}) {
				gone = orAfter(gone, missing)
				continue
			}
			gone = nil
			again := now == f.seen
			f.seen = now
			if now != f.last && !again { // its writer may have paused
				look = orAfter(look, settle)
				continue
			}
			f.changed(now)
		case <-gone:
			gone = nil
			f.changed(f.content())
		}
	}
}

// orAfter is due or, if it is nil, after that time. So later events don't put off what is due: something else in one of the folders may
// change all the time.
func orAfter(due <-chan time.Time, d time.Duration) <-chan time.Time {
	if due != nil {
		return due
	}
	return time.After(d)
}

// changed tells of a content if it isn't the last one.
func (f *follower) changed(now [sha256.Size]byte) {
	if now == f.last {
		return
	}
	f.last = now
	select {
	case f.changes <- struct{}{}:
	default: // one is waiting already
	}
}

// content is a digest of the files' names and contents; zero if one can't be read, as while it is being replaced. Folders that it meets
// are watched from then on.
func (f *follower) content() [sha256.Size]byte {
	files := f.files()
	digest := sha256.New()
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return [sha256.Size]byte{}
		}
		fmt.Fprintf(digest, "%q %d ", name, len(data))
		digest.Write(data)
	}
	return [sha256.Size]byte(digest.Sum(nil))
}

// files are the configuration's files. What appears in a folder before it is watched isn't told, so that new folders are looked into again.
func (f *follower) files() []string {
	for {
		files, folders := config.Files(f.name)
		more := false
		for _, folder := range folders {
			if !f.folders[folder] && f.watcher.Add(folder) == nil {
				f.folders[folder], more = true, true
			}
		}
		if !more {
			return files
		}
	}
}
