package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"optimist/internal/enginetest"
)

// TestSIGTERMCutsNoRequest: readiness goes first, then the listener, and the request under way is answered.
func TestSIGTERMCutsNoRequest(t *testing.T) {
	url, arrived, release := slowEngine(t)
	r := serveFor(t, url, "drain: {delay: 2s}")
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

// stuckEngine is an engine with two documents that answers no write of one. arrived gets one value for each such write.
func stuckEngine(t *testing.T) (url string, arrived <-chan struct{}) {
	engine, came := enginetest.Serve(t), make(chan struct{}, 64)
	for _, index := range []string{"shop", "marked"} {
		enginetest.Ask(t, "PUT", engine+"/"+index+"/_doc/1", `{"n":0}`)
	}
	writes := regexp.MustCompile(`^/(shop|marked)/(_doc/1|_update/1|_update_by_query)$|_bulk$`)
	return enginetest.Between(t, engine, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "GET" || !writes.MatchString(r.URL.Path) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server doesn't notice that optimist hangs up
		came <- struct{}{}
		<-r.Context().Done()
		return true
	}), came
}

// TestAWriteThatWaitsForTheEngineEndsWithTheDrain: nobody knows what became of the write, and its client is told so. Each way on which writes
// go to the engine ends, those on which a write outlasts its client, too.
func TestAWriteThatWaitsForTheEngineEndsWithTheDrain(t *testing.T) {
	for name, write := range map[string]struct {
		method, path, body string
		fields             []string
		items              bool // each item of the answer has its own status
	}{
		"PUT":         {method: "PUT", path: "/shop/_doc/1", body: `{"n":1}`},
		"PATCH":       {method: "PATCH", path: "/shop/_doc/1", body: `{"n":1}`, fields: []string{"Content-Type", "application/merge-patch+json"}},
		"_update":     {method: "POST", path: "/shop/_update/1", body: `{"doc":{"n":1}}`},
		"script":      {method: "POST", path: "/shop/_update/1", body: `{"script":"ctx._source.n=1"}`},
		"bulk":        {method: "POST", path: "/_bulk", body: `{"index":{"_index":"shop","_id":"1"}}` + "\n{}\n", items: true},
		"unguarded":   {method: "POST", path: "/shop/_update_by_query", body: `{}`},
		"key":         {method: "PUT", path: "/shop/_doc/1", body: `{"n":1}`, fields: []string{"Idempotency-Key", "k"}},
		"with a mark": {method: "PUT", path: "/marked/_doc/1", body: `{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			url, arrived := stuckEngine(t)
			r := serveFor(t, url, "drain: {delay: 0, timeout: 50ms}\nrules: [{name: m, match: {index: [marked]}, write_id: _w}, {name: all}]\n")
			r.log.Wait(t, "the engine answers")
			answer := make(chan enginetest.Answer, 1)
			go func() {
				answer <- enginetest.Try(t, write.method, "http://"+r.data+write.path, write.body, write.fields...)
			}()
			<-arrived
			r.signals <- syscall.SIGTERM
			if status := r.end(t); status != exitFailed {
				t.Errorf("status %d", status)
			}
			a := <-answer
			if a.Err != nil || !strings.Contains(a.Body, "unknown_outcome") || !write.items && a.Status != http.StatusGatewayTimeout {
				t.Errorf("the client gets %d %s [%s] %v", a.Status, a.Body, a.Outcome(), a.Err)
			}
		})
	}
}

// TestEveryClientIsAnsweredWhenTheDrainIsCut: the change of one is out at the engine, and those of the others wait for it, and for each other.
func TestEveryClientIsAnsweredWhenTheDrainIsCut(t *testing.T) {
	url, arrived := stuckEngine(t)
	r := serveFor(t, url, "drain: {delay: 0}\nlog: {level: debug}\n")
	r.log.Wait(t, "the engine answers")
	const clients = 8
	answers := make(chan enginetest.Answer, clients)
	for n := range clients {
		go func() {
			answers <- enginetest.Try(t, "PATCH", "http://"+r.data+"/shop/_doc/1", fmt.Sprintf(`{"n%d":1}`, n), "Content-Type",
				"application/merge-patch+json")
		}()
	}
	<-arrived
	enginetest.Wait(t, "all clients", func() bool {
		_, metrics := r.get(t, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("\noptimist_connections %d\n", clients))
	})
	r.signals <- syscall.SIGTERM
	r.log.Wait(t, "listener closed, finishing requests")
	again := time.AfterFunc(2*echo, func() { r.signals <- syscall.SIGTERM })
	defer again.Stop()
	if status := r.end(t); status != exitFailed {
		t.Errorf("status %d", status)
	}
	for range clients {
		a := <-answers
		unknown := a.Status == http.StatusGatewayTimeout && strings.Contains(a.Body, "unknown_outcome")
		if a.Err != nil || !unknown && !(a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, "shutting_down")) {
			t.Errorf("a client gets %d %s [%s] %v", a.Status, a.Body, a.Outcome(), a.Err)
		}
	}
}
