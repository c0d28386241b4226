package main

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSIGTERMCutsNoRequest: readiness goes first, then the listener, and the request under way is answered.
func TestSIGTERMCutsNoRequest(t *testing.T) {
	url, arrived, release := slowEngine(t)
	r := serveFor(t, url, "drain: {delay: 300ms}")
	r.log.Wait(t, "the engine answers")
	if status, body := r.get(t, "/_optimist/ready"); status != 200 {
		t.Fatalf("ready is %d %s", status, body)
	}
	answer := ask(t, r.data)
	<-arrived
	r.signals <- syscall.SIGTERM
	r.log.Wait(t, "msg=draining")
	for status := 200; status != 503; {
		status, _ = r.get(t, "/_optimist/ready")
	}
	late := ask(t, r.data) // within the delay: load balancers haven't noticed yet
	<-arrived
	r.log.Wait(t, "listener closed")
	if status, body := r.get(t, "/_optimist/health"); status != 200 || !strings.Contains(body, "draining") {
		t.Errorf("health while draining is %d %s", status, body)
	}
	release()
	for _, a := range []<-chan string{answer, late} {
		if got := <-a; !strings.HasPrefix(got, "200 ") {
			t.Errorf("a request was cut: %s", got)
		}
	}
	if status := r.end(t); status != exitOK {
		t.Errorf("status %d", status)
	}
	if c, err := net.Dial("tcp", r.data); err == nil {
		c.Close()
		t.Error("the data port is still open")
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	url, arrived, _ := slowEngine(t)
	r := serveFor(t, url, "drain: {delay: 0}")
	answer := ask(t, r.data)
	<-arrived
	r.signals <- syscall.SIGTERM
	r.log.Wait(t, "listener closed, finishing requests.*requests=1")
	r.signals <- syscall.SIGHUP // not meant to end anything
	again := time.AfterFunc(2*echo, func() { r.signals <- syscall.SIGTERM })
	defer again.Stop()
	if status := r.end(t); status != exitFailed {
		t.Errorf("requests were cut, and the status is %d", status)
	}
	if got := <-answer; strings.HasPrefix(got, "200 ") {
		t.Errorf("the answer is %s", got)
	}
}

// TestASignalThatComesTwiceIsOne: timeout(1) signals the process, and then its group, in which the process is, too.
func TestASignalThatComesTwiceIsOne(t *testing.T) {
	url, arrived, release := slowEngine(t)
	r := serveFor(t, url, "drain: {delay: 0}")
	answer := ask(t, r.data)
	<-arrived
	r.signals <- syscall.SIGTERM
	r.signals <- syscall.SIGTERM
	r.log.Wait(t, "listener closed, finishing requests.*requests=1")
	release()
	if got := <-answer; !strings.HasPrefix(got, "200 ") {
		t.Errorf("the request was cut: %s", got)
	}
	if status := r.end(t); status != exitOK {
		t.Errorf("status %d", status)
	}
}

func TestDrainTimeoutEndsTheWait(t *testing.T) {
	url, arrived, _ := slowEngine(t)
	r := serveFor(t, url, "drain: {delay: 0, timeout: 50ms}")
	ask(t, r.data)
	<-arrived
	r.signals <- os.Interrupt
	if status := r.end(t); status != exitFailed {
		t.Errorf("status %d", status)
	}
	r.log.Wait(t, "ended, requests were cut.*drain.timeout")
}
