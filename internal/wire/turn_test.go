package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestTurnsGoBackAndForth(t *testing.T) {
	near, far := pair(t)
	const turns = 5000
	go func() {
		_, _ = io.CopyN(far, far, 2*turns) // echoes at once: no wake-up may get lost, however early it is
		_, _ = far.Read(make([]byte, 1))
		far.CloseWrite()
	}()
	turn, r := NewTurn(near), NewReader(near)
	for i := range turns {
		out := []byte{byte(i), byte(i >> 8)}
		wrote, writeErr, readErr := r.FillAfter(turn, out)
		if wrote != 2 || writeErr != nil || readErr != nil {
			t.Fatal(wrote, writeErr, readErr)
		}
		for r.Buffered() < 2 {
			if err := r.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(r.Peek(), out) {
			t.Fatalf("turn %d: %x", i, r.Peek())
		}
		r.Discard(2)
	}
	if _, _, err := r.FillAfter(turn, []byte("x")); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	if n, err, _ := r.FillAfter(turn, []byte("x")); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestTurnWritesWhatTheSocketDoesNotTakeAtOnce(t *testing.T) {
	near, far := pair(t)
	const size = 16 << 20
	got := make(chan int64)
	go func() {
		n, _ := io.CopyN(io.Discard, far, size)
		_, _ = far.Write([]byte("thanks"))
		got <- n
	}()
	r := NewReader(near)
	wrote, writeErr, readErr := r.FillAfter(NewTurn(near), make([]byte, size))
	if wrote != size || writeErr != nil || readErr != nil || string(r.Peek()) != "thanks" || <-got != size {
		t.Errorf("%d, %v, %v, %q", wrote, writeErr, readErr, r.Peek())
	}
}

func TestTurnDoesNotWaitWhenSomethingIsBuffered(t *testing.T) {
	near, far := pair(t)
	_, _ = far.Write([]byte("early"))
	r := NewReader(near)
	if err := r.Fill(); err != nil {
		t.Fatal(err)
	}
	if n, err, _ := r.FillAfter(NewTurn(near), []byte("answer")); n != 6 || err != nil || string(r.Peek()) != "early" {
		t.Errorf("%d, %v, %q", n, err, r.Peek())
	}
}

func TestTurnTellsAWriteThatFailedFromAReadThatDid(t *testing.T) {
	near, far := pair(t)
	_ = far.SetLinger(0)
	far.Close()
	await(t, NewProbe(near), PeerGone)
	turn := NewTurn(near)
	if wrote, writeErr, _, _ := turn.Do([]byte("x"), make([]byte, 1)); wrote != 0 || writeErr == nil {
		t.Errorf("reset: %d, %v", wrote, writeErr)
	}
	near.Close()
	if wrote, writeErr, _, _ := turn.Do([]byte("x"), make([]byte, 1)); wrote != 0 || !errors.Is(writeErr, net.ErrClosed) {
		t.Errorf("closed: %d, %v", wrote, writeErr)
	}
	near, far = pair(t)
	go func() {
		_, _ = far.Read(make([]byte, 1)) // it was written: only then the time is up
		_ = near.SetReadDeadline(time.Now())
	}()
	if wrote, writeErr, _, readErr := NewTurn(near).Do([]byte("x"), make([]byte, 1)); wrote != 1 || writeErr != nil || !errors.Is(readErr, os.ErrDeadlineExceeded) {
		t.Errorf("deadline: %d, %v, %v", wrote, writeErr, readErr)
	}
	_ = far.SetReadDeadline(time.Now())
	if wrote, writeErr, _, _ := NewTurn(far).Do([]byte("x"), make([]byte, 1)); wrote != 0 || !errors.Is(writeErr, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline that has passed: %d, %v", wrote, writeErr)
	}
}

func TestTurnIsEndedByAClose(t *testing.T) {
	near, far := pair(t)
	go func() {
		_, _ = far.Read(make([]byte, 1)) // it was written, so the other side waits, or is about to
		near.Close()
	}()
	if wrote, writeErr, _, readErr := NewTurn(near).Do([]byte("x"), make([]byte, 1)); wrote != 1 || writeErr != nil || !errors.Is(readErr, net.ErrClosed) {
		t.Errorf("%d, %v, %v", wrote, writeErr, readErr)
	}
}

func TestTurnIsOnlyForPlainTCP(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if NewTurn(a) != nil {
		t.Error("a pipe")
	}
}
