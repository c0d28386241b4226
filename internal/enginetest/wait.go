package enginetest

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long something is waited for that is about to happen.
const patience = 20 * time.Second

// Wait waits until a condition holds that something else brings about, and ends the test if it never does.
func Wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("still not: %s", what)
		}
	}
}

// Log is an output that can be waited on. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next Write; nil if nobody waits
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(p)
}

// String is what was written so far.
func (l *Log) String() string {
	text, _ := l.look()
	return text
}

func (l *Log) look() (text string, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return l.text.String(), l.more
}

// Contains reports whether the log has that text now.
func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }

// Wait waits until the pattern matches in the log, and returns the match's last group, or the whole match.
func (l *Log) Wait(t testing.TB, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		text, more := l.look()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("the log never says %s:\n%s", pattern, text)
		}
	}
}
