package demo

import (
	"strings"
	"sync"
	"testing"

	"optimist/internal/demo/app"
)

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	var b strings.Builder
	p := &turn{out: &b, terminal: true, name: "a counter, through optimist", total: 800}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				p.step()
			}
		})
	}
	wg.Wait()
	p.done(&app.Result{}, nil)
	drawn := strings.Split(b.String(), "\r")
	if n := len(drawn) - 1; n != 100 || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("drawn %d times, in %d lines", n, strings.Count(b.String(), "\n"))
	}
	if last := drawn[len(drawn)-1]; last != "a counter, through optimist                800 / 800 rounds\n" {
		t.Errorf("%q", last)
	}
}
