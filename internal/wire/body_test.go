package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func chunkedHead() *Head { return &Head{Body: Chunked, Length: -1} }

func TestChunkedBodies(t *testing.T) {
	for _, c := range []struct {
		name, raw, body, rest string
		err                   error
	}{
		{"empty", "0\r\n\r\n", "", "", nil},
		{"two chunks", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET", "hello world", "GET", nil},
		{"upper case and leading zeros", "00A\r\n0123456789\r\n000\r\n\r\n", "0123456789", "", nil},
		{"data that looks like chunks", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n", "", nil},
		{"extensions are dropped", "2;a=b;c=\"d\"\r\nhi\r\n0;x\r\n\r\n", "hi", "", nil},
		{"bad white space before an extension", "2 \t;a\r\nhi\r\n0\r\n\r\n", "hi", "", nil},
		{"trailers are dropped", "2\r\nhi\r\n0\r\nX: y\r\nContent-Length: 5\r\n\r\nrest", "hi", "rest", nil},
		{"no size", "\r\nhi\r\n", "", "", ErrChunk},
		{"0x", "0x2\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"signed", "+2\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"negative", "-2\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"underscore", "1_0\r\n", "", "", ErrChunk},
		{"leading space", " 2\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"trailing space", "2 \r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"overflow", "10000000000000002\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"overflow of 64 bits", "fffffffffffffffff\r\nhi\r\n", "", "", ErrChunk},
		{"many leading zeros", strings.Repeat("0", 17) + "2\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"bare LF after the size", "2\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"bare LF in an extension", "2;a\nb\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"bare CR in an extension", "2;a\rb\r\nhi\r\n0\r\n\r\n", "", "", ErrChunk},
		{"bare LF after data", "2\r\nhi\n0\r\n\r\n", "hi", "", ErrChunk},
		{"data longer than its size", "2\r\nhix\r\n0\r\n\r\n", "hi", "", ErrChunk},
		{"data shorter than its size", "3\r\nhi\r\n0\r\n\r\n", "hi\r", "", ErrChunk},
		{"bare LF at the end", "2\r\nhi\r\n0\r\n\n", "hi", "", ErrChunk},
		{"trailer without colon", "0\r\nnonsense\r\n\r\n", "", "", ErrChunk},
		{"request in place of a trailer", "0\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "", ErrChunk},
		{"folded trailer", "0\r\nX: y\r\n z\r\n\r\n", "", "", ErrChunk},
		{"NUL in a trailer", "0\r\nX: \x00\r\n\r\n", "", "", ErrChunk},
		{"endless extension", "2;" + strings.Repeat("a", 2000) + "\r\nhi\r\n0\r\n\r\n", "", "", ErrChunkOverhead},
		{"extensions without end", strings.Repeat("1;"+strings.Repeat("a", 900)+"\r\nx\r\n", 20) + "0\r\n\r\n", strings.Repeat("x", 18), "", ErrChunkOverhead},
		{"trailers without end", "0\r\n" + strings.Repeat("X: y\r\n", 2000), "", "", ErrChunkOverhead},
		{"one endless trailer", "0\r\nX: " + strings.Repeat("y", 20000), "", "", ErrChunkOverhead},
		{"cut in the size", "5", "", "", io.ErrUnexpectedEOF},
		{"cut in the data", "5\r\nhel", "hel", "", io.ErrUnexpectedEOF},
		{"cut after the data", "5\r\nhello", "hello", "", io.ErrUnexpectedEOF},
		{"cut before the last chunk", "5\r\nhello\r\n", "hello", "", io.ErrUnexpectedEOF},
		{"cut before the last line", "5\r\nhello\r\n0\r\n", "hello", "", io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, c.raw, func(t *testing.T, r *Reader) {
				var b Body
				b.Reset(r, chunkedHead())
				got, err := readAll(&b)
				if string(got) != c.body || !errors.Is(err, c.err) {
					t.Fatalf("got %q, %v, want %q, %v", got, err, c.body, c.err)
				}
				if b.Done() != (c.err == nil) {
					t.Errorf("Done is %v", b.Done())
				}
				if rest, _ := remaining(r); c.err == nil && string(rest) != c.rest {
					t.Errorf("left over %q, want %q", rest, c.rest)
				}
			})
		})
	}
}

func TestWholeChunkedBodyIsTakenFromTheBufferOrNotAtAll(t *testing.T) {
	const raw = "5;x\r\nhello\r\n6\r\n world\r\n0\r\nT: v\r\n\r\n"
	for cutAt := range len(raw) + 1 {
		r := newReader(io.MultiReader(strings.NewReader(raw[:cutAt]), strings.NewReader(raw[cutAt:]+"next")))
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
		var b Body
		b.Reset(r, chunkedHead())
		got, whole := b.Whole(nil)
		if whole != (cutAt == len(raw) || cutAt == 0) { // at 0 the first read is all of it
			t.Fatalf("cut at %d: whole is %v", cutAt, whole)
		}
		if !whole {
			var err error
			if got, err = readAll(&b); err != nil {
				t.Fatalf("cut at %d: %v", cutAt, err)
			}
		}
		if string(got) != "hello world" || !b.Done() {
			t.Fatalf("cut at %d: %q", cutAt, got)
		}
	}
}

func TestLengthAndUntilCloseBodies(t *testing.T) {
	bothWays(t, "hello world", func(t *testing.T, r *Reader) {
		var b Body
		b.Reset(r, &Head{Body: Length, Length: 5})
		got, err := readAll(&b)
		if string(got) != "hello" || err != nil || !b.Done() {
			t.Errorf("length: %q, %v", got, err)
		}
		b.Reset(r, &Head{Body: UntilClose, Length: -1})
		got, err = readAll(&b)
		if string(got) != " world" || err != nil || !b.Done() {
			t.Errorf("until close: %q, %v", got, err)
		}
	})
	bothWays(t, "hell", func(t *testing.T, r *Reader) {
		var b Body
		b.Reset(r, &Head{Body: Length, Length: 5})
		if _, err := readAll(&b); err != io.ErrUnexpectedEOF || b.Done() {
			t.Errorf("cut: %v", err)
		}
	})
}

// stuttering fails with a deadline between any two bytes.
type stuttering struct {
	rest string
	fail bool
}

func (s *stuttering) Read(p []byte) (int, error) {
	s.fail = !s.fail
	switch {
	case s.fail:
		return 0, os.ErrDeadlineExceeded
	case s.rest == "":
		return 0, io.EOF
	}
	p[0], s.rest = s.rest[0], s.rest[1:]
	return 1, nil
}

func TestBodyGoesOnAfterADeadlineThatWasLifted(t *testing.T) {
	r := newReader(&stuttering{rest: "5\r\nhello\r\n0\r\nT: v\r\n\r\n"})
	var b Body
	b.Reset(r, chunkedHead())
	var got bytes.Buffer
	for {
		p, err := b.Next()
		got.Write(p)
		if err == io.EOF {
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.Recover()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != "hello" {
		t.Errorf("got %q", got.String())
	}
}

func TestChunksAreWrittenAsTheyAreRead(t *testing.T) {
	var raw []byte
	for _, s := range []string{"hello", "", strings.Repeat("x", 5000)} {
		raw = AppendChunk(raw, []byte(s))
	}
	raw = append(raw, LastChunk...)
	var b Body
	b.Reset(newReader(bytes.NewReader(raw)), chunkedHead())
	if got, err := readAll(&b); err != nil || string(got) != "hello"+strings.Repeat("x", 5000) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestBufferGrowsForAStreamAndShrinksAfterIt(t *testing.T) {
	r := newReader(io.LimitReader(zeros{}, 1<<20))
	var b Body
	b.Reset(r, &Head{Body: Length, Length: 1 << 20})
	largest := 0
	for {
		p, err := b.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(p))
	}
	if largest != maxBuffer {
		t.Errorf("the largest read was %d, want %d", largest, maxBuffer)
	}
	r.Shrink()
	if len(r.buf) != 0 {
		t.Error("an idle reader keeps a large buffer")
	}
}

// room has so many bytes left.
type room int64

var errRoom = errors.New("no room")

func (r *room) Take(n int64) error {
	if int64(*r) < n {
		return errRoom
	}
	*r -= room(n)
	return nil
}

// TestABufferGrowsByWhatItsRoomHas: without more room a body comes in smaller pieces, and a head doesn't.
func TestABufferGrowsByWhatItsRoomHas(t *testing.T) {
	left := room(20 << 10)
	r := newReader(io.LimitReader(zeros{}, 1<<20))
	r.Room = &left
	var b Body
	b.Reset(r, &Head{Body: Length, Length: 1 << 20})
	if all, err := readAll(&b); len(all) != 1<<20 || err != nil || r.Size() != 4*minBuffer || left != 8<<10 {
		t.Errorf("%d bytes, %v, a buffer of %d, room for %d", len(all), err, r.Size(), left)
	}
	left = 8 << 10
	r.Reset(strings.NewReader("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n"))
	if err := new(Head).ReadRequest(r, 0); !errors.Is(err, errRoom) {
		t.Errorf("%v", err)
	}
}

// TestBrokenChunkedBodyStaysBroken is about the line after the one that was refused: it could look like the body's end.
func TestBrokenChunkedBodyStaysBroken(t *testing.T) {
	r := newReader(strings.NewReader("0\r\nX: " + strings.Repeat("x", maxTrailers) + "\r\n\r\nGET / HTTP/1.1\r\n"))
	var b Body
	b.Reset(r, &Head{Body: Chunked, Length: -1})
	if _, err := b.Next(); !errors.Is(err, ErrChunkOverhead) {
		t.Fatalf("got %v", err)
	}
	if _, ok := b.Whole(nil); ok || b.Done() {
		t.Error("taken for whole")
	}
	if _, err := b.Next(); !errors.Is(err, ErrChunkOverhead) {
		t.Errorf("then %v", err)
	}
}

func TestWhatIsGatheredIsCopiedLittle(t *testing.T) {
	const size = 16 << 20
	piece := bytes.Repeat([]byte("x"), 32<<10)
	for _, length := range []int64{-1, size, 1 << 40, 5} {
		var buf []byte
		made := 0
		for len(buf) < size {
			before := cap(buf)
			buf = Gather(buf, piece, length)
			if cap(buf) != before {
				made += cap(buf)
			}
			if length == 1<<40 && len(buf) < trustedLength && cap(buf) > 4*trustedLength {
				t.Fatalf("%d bytes of memory for %d that are here", cap(buf), len(buf))
			}
			if length == 1<<40 && len(buf) >= trustedLength-len(piece) {
				break // what comes is believed from here on
			}
		}
		if len(buf) > 0 && buf[len(buf)-1] != 'x' || made > 2*size+4*trustedLength {
			t.Errorf("length %d: %d bytes of memory for %d", length, made, len(buf))
		}
	}
	if got := Gather([]byte("ab"), []byte("cd"), 3); string(got) != "abcd" {
		t.Errorf("%q", got)
	}
}
