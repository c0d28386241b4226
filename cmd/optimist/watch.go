package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be left alone to be read: editors and orchestrators change files in several steps.
const settle = 100 * time.Millisecond

// watch tells of changes of a file's content since its call. It watches the folder, because files are replaced by renaming others, and in
// a Kubernetes ConfigMap by turning a symbolic link elsewhere in the folder. stop ends it. Without a name, or with an error, nothing
// is ever told.
func watch(name string) (changes <-chan struct{}, stop func(), err error) {
	told := make(chan struct{}, 1)
	if name == "" {
		return told, func() {}, nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return told, func() {}, err
	}
	if err := w.Add(filepath.Dir(name)); err != nil {
		_ = w.Close() // the other error says what is wrong
		return told, func() {}, err
	}
	last := content(name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(name, last, w, told)
	}()
	return told, func() {
		_ = w.Close() // it ends the loop; there is nothing to lose
		<-done
	}, nil
}

func follow(name string, last [sha256.Size]byte, w *fsnotify.Watcher, told chan<- struct{}) {
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	for {
		select {
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			quiet.Reset(settle)
		case _, ok := <-w.Errors: // events were dropped: look as if there had been one
			if !ok {
				return
			}
			quiet.Reset(settle)
		case <-quiet.C:
			now := content(name)
			if now == last || now == ([sha256.Size]byte{}) {
				continue
			}
			last = now
			select {
			case told <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}

// content is a file's digest; zero if it can't be read, as while it is being replaced.
func content(name string) [sha256.Size]byte {
	data, err := os.ReadFile(name)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(data)
}
