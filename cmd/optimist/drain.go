package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"optimist/internal/obs"
)

// echo is how long after the first signal another one is taken for the same order. Who signals both a process and its group sends two:
// timeout(1) does, and wrappers that pass on what a terminal has sent already.
const echo = 200 * time.Millisecond

// drain ends the service without cutting a request: readiness goes first, so that load balancers send nothing new; after the delay the
// listener; then the requests under way are waited for. A second signal, or drain.timeout, cuts what is left. interactive is
// for whoever sits at a keyboard: no load balancer needs time.
func (s *service) drain(signals <-chan os.Signal, interactive bool) error {
	told := time.Now()
	s.draining.Store(true)
	c := s.current.Load().Drain
	if !interactive && !pause(c.Delay.Std(), told, signals) {
		return s.cut("a second signal")
	}
	ctx, cancel := context.WithCancel(context.Background())
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout.Std())
	}
	defer cancel()
	open, active := s.door.Connections()
	s.log.Info("listener closed, finishing requests", "connections", open, "requests", active)
	if s.locks != nil {
		s.locks.Drain()
	}
	done := make(chan error, 1)
	go func() { done <- s.door.Drain(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return s.cut("drain.timeout")
			}
			s.log.Info("drained")
			return nil
		case sig := <-signals:
			if again(sig, told) {
				return s.cut("a second signal")
			}
		}
	}
}

// again reports whether a signal is another order to end, after the one of that time.
func again(sig os.Signal, told time.Time) bool {
	return sig != syscall.SIGHUP && time.Since(told) > echo
}

// pause waits; it is false if another signal to end comes.
func pause(d time.Duration, told time.Time, signals <-chan os.Signal) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case sig := <-signals:
			if again(sig, told) {
				return false
			}
		}
	}
}

// cut ends with the status of somebody whose requests were not all answered, if there were any.
func (s *service) cut(why string) error {
	_, active := s.door.Connections()
	s.door.Close()
	if active == 0 {
		s.log.Info("ended", obs.KeyReason, why)
		return nil
	}
	s.log.Warn("ended, requests were cut", obs.KeyReason, why, "requests", active)
	return &exitError{status: exitFailed}
}
