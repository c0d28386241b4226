package main

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// output is standard output. It remembers that it couldn't write, so that no command has to look: a file of rules that a full disk has
// cut off doesn't come with the status of success.
type output struct {
	io.Writer
	mu     sync.Mutex
	failed error
}

func (o *output) Write(text []byte) (n int, err error) {
	n, err = o.Writer.Write(text)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = err
		}
	}
	return n, err
}

// failure is the first error, or nil. A reader that has seen enough (| head) is none.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.failed, syscall.EPIPE) {
		return nil
	}
	return o.failed
}
