package hostile

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// forwardTo is the variable that makes this program a forwarder to an address, instead of running the tests.
const forwardTo = "HOSTILE_FORWARD_TO"

func TestMain(m *testing.M) {
	if to := os.Getenv(forwardTo); to != "" {
		forward(to)
		return
	}
	os.Exit(m.Run())
}

// forward copies bytes between its clients and an address. It says on which port, and ends with its input.
func forward(to string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		client, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer func() { _ = client.Close() }()
			engine, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = engine.Close() }()
			go func() { _, _ = io.Copy(engine, client) }()
			_, _ = io.Copy(client, engine)
		}()
	}
}

// startForwarder starts a process that forwards to an engine, until the test ends, and returns its URL.
func startForwarder(t *testing.T, engineURL string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), forwardTo+"="+strings.TrimPrefix(engineURL, "http://"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr)
}
