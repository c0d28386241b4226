// Package coding decodes gzip bodies of messages, the one content coding that the engines and their clients use.
//
// It bounds everything that it decodes, so it doesn't promise the whole of a body that becomes too large.
package coding

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"optimist/internal/large"
)

var (
	// ErrUnknown reports a content coding that isn't decoded here.
	ErrUnknown = errors.New("unknown content coding")
	// ErrTooLarge reports a body that becomes larger than it may, or by more than MaxRatio.
	ErrTooLarge = errors.New("the decoded body is too large")
	// ErrMalformed reports bytes that aren't what their content coding says.
	ErrMalformed = errors.New("the body isn't the gzip data that its Content-Encoding says")
)

const (
	// MaxRatio is how many bytes each byte of gzip data may become, beyond the first freeBytes. Documents seldom reach 50; data
	// made to use up memory reaches 1,032.
	MaxRatio  = 200
	freeBytes = 4 << 20
)

// IsGzip reports whether the value of a Content-Encoding field is gzip.
func IsGzip(value []byte) bool {
	return strings.EqualFold(string(value), "gzip") || strings.EqualFold(string(value), "x-gzip")
}

// TakesGzip reports whether the value of an Accept-Encoding field takes gzip. It doesn't with a weight that can't be read.
func TakesGzip(value []byte) bool {
	takes := false
	for len(value) > 0 {
		var part []byte
		part, value, _ = bytes.Cut(value, []byte(","))
		name, weight, _ := bytes.Cut(part, []byte(";"))
		name = bytes.TrimSpace(name)
		if any := string(name) == "*"; any || IsGzip(name) {
			q, v, _ := bytes.Cut(weight, []byte("="))
			takes = len(weight) == 0 || strings.EqualFold(string(bytes.TrimSpace(q)), "q") && bytes.ContainsAny(v, "123456789")
			if !any {
				return takes
			}
		}
	}
	return takes
}

// Decode returns body without the content coding that the value of its Content-Encoding field names, at most limit bytes. An
// empty value and identity leave the body as it is, whatever its size. Errors are ErrUnknown and those of Gunzip.
func Decode(body, value []byte, limit int64) ([]byte, error) {
	return DecodeIn(nil, body, value, limit)
}

// DecodeIn is Decode with the memory of a room, which may be nil. The error may be the room's.
func DecodeIn(room Room, body, value []byte, limit int64) ([]byte, error) {
	switch {
	case len(value) == 0 || strings.EqualFold(string(value), "identity"):
		return body, nil
	case !IsGzip(value):
		return nil, fmt.Errorf("%w: %q", ErrUnknown, value)
	}
	return GunzipIn(room, body, limit)
}

// Room is where memory is taken from before it is allocated. It is a consumer's *budget.Account.
type Room interface {
	// Take takes n bytes, or returns an error and takes none.
	Take(n int64) error
}

// Gunzip decodes gzip data, at most limit bytes. With an error it returns what comes before: ErrTooLarge where more than that
// follows, ErrMalformed where the data breaks off or isn't gzip.
func Gunzip(data []byte, limit int64) ([]byte, error) { return GunzipIn(nil, data, limit) }

// GunzipIn is Gunzip with the memory of a room, which may be nil. The error may be the room's; then nothing is returned.
func GunzipIn(room Room, data []byte, limit int64) ([]byte, error) {
	z := readers.Get().(*Reader) //nolint:forcetypeassert // the pool has no others
	defer readers.Put(z)
	defer z.leave()
	if err := z.open(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	limit = min(limit, max(freeBytes, MaxRatio*int64(len(data))))
	plain, refusal, err := readAll(z, firstSize(data), limit, room)
	switch {
	case refusal != nil:
		return nil, refusal
	case int64(len(plain)) > limit:
		return plain[:limit], fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	case err != nil:
		return plain, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return plain, nil
}

// headLength is how many bytes the head of a member has at least (RFC 1952, 2.3).
const headLength = 10

// Reader reads gzip data as the engines do: all members, one after the other. Fewer bytes behind the last member than the head of another
// one would have are ignored. It bounds nothing.
type Reader struct {
	in *bufio.Reader
	z  gzip.Reader
}

// readers are those of whole data. Each has a window of 32 KiB.
var readers = sync.Pool{New: func() any { return &Reader{in: bufio.NewReader(nil)} }}

// NewReader returns a Reader. The error is io.EOF if there is no data, that of the data, or says that it isn't gzip.
func NewReader(data io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReader(nil)}
	if err := r.open(data); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(data io.Reader) error {
	r.in.Reset(data)
	return r.member()
}

// member begins the next member.
func (r *Reader) member() error {
	err := r.z.Reset(r.in)
	r.z.Multistream(false)
	return err
}

// leave lets go of the data.
func (r *Reader) leave() {
	r.in.Reset(nil)
	r.z.Header = gzip.Header{}
}

// Read implements io.Reader.
func (r *Reader) Read(into []byte) (int, error) {
	for {
		n, err := r.z.Read(into)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil // the next call goes on with the next member
		}
		if head, err := r.in.Peek(headLength); len(head) < headLength {
			return 0, err
		}
		if err := r.member(); err != nil {
			return 0, err
		}
	}
}

const (
	// mostRatio is how many bytes each byte of gzip data can become (RFC 1951: 258 bytes in two bits).
	mostRatio = 1032
	// trailer is how many bytes the data's checksum and length have (RFC 1952, 2.3.1).
	trailer = 8
)

// firstSize is how much memory the text of gzip data gets at first: one byte more than it has, so that it is read to its end without a
// copy. The length is in the last bytes of the data. Data that lies, and data of several members, may become more. Data that says
// more than it can become gets no more than that.
func firstSize(data []byte) int64 {
	if len(data) < trailer {
		return 1
	}
	return 1 + min(int64(binary.LittleEndian.Uint32(data[len(data)-4:])), mostRatio*int64(len(data)))
}

// minGrowth is by how many bytes a text grows at least that is longer than its data says.
const minGrowth = 512

// readAll reads up to one byte more than limit. size is how many bytes it has memory for at first. err is the reader's, nil at its end. A
// turn is what one Read gives: 32 KiB at most, as gzip has no more at hand.
func readAll(r io.Reader, size, limit int64, room Room) (plain []byte, refusal, err error) {
	size = min(size, limit+1)
	var work large.Work
	defer work.End()
	for {
		if room != nil {
			if err := room.Take(size - int64(cap(plain))); err != nil {
				return nil, err, nil
			}
		}
		plain = append(make([]byte, 0, size), plain...)
		for len(plain) < cap(plain) {
			work.Turn(cap(plain))
			n, err := r.Read(plain[len(plain):cap(plain)])
			plain = plain[:len(plain)+n]
			switch {
			case err == io.EOF:
				return plain, nil, nil
			case err != nil:
				return plain, nil, err
			}
		}
		if size > limit {
			return plain, nil, nil
		}
		size = min(2*size+minGrowth, limit+1)
	}
}
