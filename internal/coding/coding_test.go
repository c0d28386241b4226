package coding

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

func zipped(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCodingsAreTakenOffOrNamed(t *testing.T) {
	plain := []byte(`{"a":1}`)
	z := zipped(t, plain)
	for value, want := range map[string]struct {
		body []byte
		err  error
	}{
		"": {z, nil}, "identity": {z, nil}, "gzip": {plain, nil}, "GZip": {plain, nil}, "x-gzip": {plain, nil},
		"deflate": {nil, ErrUnknown}, "gzip, gzip": {nil, ErrUnknown}, "br": {nil, ErrUnknown},
	} {
		if got, err := Decode(z, []byte(value), 100); !bytes.Equal(got, want.body) || !errors.Is(err, want.err) {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
}

func TestWhatIsDecodedIsBounded(t *testing.T) {
	noise := make([]byte, 100<<10)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(noise)
	zeros := make([]byte, 3*freeBytes)
	broken := zipped(t, noise)
	for name, c := range map[string]struct {
		data  []byte
		limit int64
		size  int
		err   error
	}{
		"within the limit":          {zipped(t, noise), 100 << 10, 100 << 10, nil},
		"over the limit":            {zipped(t, noise), 100<<10 - 1, 100<<10 - 1, ErrTooLarge},
		"dense and small":           {zipped(t, zeros[:freeBytes]), 1 << 30, freeBytes, nil},
		"too dense":                 {zipped(t, zeros), 1 << 30, freeBytes, ErrTooLarge},
		"cut off":                   {broken[:len(broken)/2], 1 << 30, -1, ErrMalformed},
		"over the limit, and a cut": {broken[:len(broken)/2], 10, 10, ErrTooLarge},
		"not gzip":                  {[]byte("{}"), 1 << 30, 0, ErrMalformed},
		"empty":                     {nil, 1 << 30, 0, ErrMalformed},
	} {
		got, err := Gunzip(c.data, c.limit)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || c.size >= 0 && len(got) != c.size {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if strings.HasPrefix(name, "cut") && (len(got) == 0 || !bytes.HasPrefix(noise, got)) {
			t.Errorf("%s: %d bytes that aren't the first", name, len(got))
		}
	}
}

// Elasticsearch 7.10 and 9.5 and OpenSearch 3.8 take these bodies, and close the connection of the others without an answer.
func TestWhatIsBehindAMemberIsReadAsTheEnginesReadIt(t *testing.T) {
	begin, end := string(zipped(t, []byte(`{"a":1,`))), string(zipped(t, []byte(`"b":2}`)))
	for name, c := range map[string]struct {
		data string
		err  error
	}{
		"nothing": {begin + end, nil}, "the end of a line": {begin + end + "\n", nil}, "zeros": {begin + end + strings.Repeat("\x00", 9), nil},
		"half a head": {begin + end + end[:9], nil}, "as many zeros as a head has": {begin + end + strings.Repeat("\x00", 10), ErrMalformed},
		"text": {begin + end + "what isn't compressed", ErrMalformed}, "a head": {begin + end + end[:10], ErrMalformed},
		"an empty member": {begin + string(zipped(t, nil)) + end, nil},
	} {
		got, err := Gunzip([]byte(c.data), 100)
		if string(got) != `{"a":1,"b":2}` || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("behind it %s: %s %v", name, got, err)
		}
		r, err := NewReader(iotest.OneByteReader(strings.NewReader(c.data)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != `{"a":1,"b":2}` || (err == nil) != (c.err == nil) {
			t.Errorf("behind it %s, as a stream: %s %v", name, got, err)
		}
	}
}

// The data says how long its text is. What it says is believed as far as it can be true.
func TestTextsAreReadIntoTheMemoryThatTheyNeed(t *testing.T) {
	plain := bytes.Repeat([]byte("a"), 1<<20)
	z := zipped(t, plain)
	liar := func(length uint32) []byte {
		return binary.LittleEndian.AppendUint32(z[:len(z)-4:len(z)-4], length)
	}
	small := zipped(t, []byte("{}"))
	copy(small[len(small)-4:], "\xff\xff\xff\xff")
	for name, c := range map[string]struct {
		data  []byte
		err   error
		taken int64
	}{
		"its own length":      {z, nil, int64(len(plain)) + 1},
		"a smaller one":       {liar(0), ErrMalformed, 2 << 20},
		"a larger one":        {liar(1 << 31), ErrMalformed, mostRatio*int64(len(z)) + 1},
		"several members":     {append(z[:len(z):len(z)], zipped(t, []byte("{}"))...), nil, 4 << 20},
		"a small one's lie":   {small, ErrMalformed, mostRatio*int64(len(small)) + 1},
		"too little to be it": {z[:5], ErrMalformed, 0},
	} {
		r := &room{left: 1 << 30}
		if _, err := GunzipIn(r, c.data, 1<<30); !errors.Is(err, c.err) || c.err == nil && err != nil || r.taken > c.taken {
			t.Errorf("%s: took %d bytes, at most %d expected: %v", name, r.taken, c.taken, err)
		}
	}
}

// A reader is used again after every kind of data.
func TestReadersAreUsedAgain(t *testing.T) {
	good := zipped(t, []byte(`{"a":1}`))
	for range 3 {
		for _, data := range [][]byte{nil, []byte("{}"), good[:12], good[:len(good)-1], good} {
			_, _ = Gunzip(data, 100)
			if plain, err := Gunzip(good, 100); err != nil || string(plain) != `{"a":1}` {
				t.Fatalf("after %q: %q, %v", data, plain, err)
			}
		}
	}
}

// room is memory of so many bytes.
type room struct{ left, taken int64 }

var errFull = errors.New("full")

func (r *room) Take(n int64) error {
	if n > r.left {
		return errFull
	}
	r.left, r.taken = r.left-n, r.taken+n
	return nil
}

// Memory is asked for before it is there, and never for less than what comes of the data.
func TestMemoryIsTakenBeforeItIsUsed(t *testing.T) {
	plain := bytes.Repeat([]byte("ab"), 300<<10)
	z := zipped(t, plain)
	enough := &room{left: 4 << 20}
	got, err := GunzipIn(enough, z, 1<<20)
	if err != nil || !bytes.Equal(got, plain) || enough.taken != int64(cap(got)) {
		t.Errorf("%d bytes in %d, for which %d were taken: %v", len(got), cap(got), enough.taken, err)
	}
	for _, n := range []int64{0, 10 << 10, 500 << 10} {
		little := &room{left: n}
		if got, err := DecodeIn(little, z, []byte("gzip"), 1<<20); !errors.Is(err, errFull) || got != nil {
			t.Errorf("%d bytes are too few: %d, %v", n, len(got), err)
		}
	}
	if got, err := GunzipIn(&room{}, zipped(t, nil), 0); got != nil || !errors.Is(err, errFull) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhichAcceptEncodingsTakeGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "identity": false, "deflate": false, "br": false, "gzip;q=0": false, "gzip; q=0.000, *": false, "*;q=0": false, "xgzip": false,
		"gzip": true, "GZip": true, "x-gzip": true, "deflate, gzip": true, "br;q=1.0,gzip;q=0.001": true, "*": true, "*;q=0, gzip": true,
		"gzip ; q=0.5": true, "gzip;q=1": true, "gzip;Q=0": false, "gzip;Q=0.5": true, "gzip; q = 0": false, "gzip;q=": false, "gzip;q=x": false,
		"gzip;level=1": false, ",,gzip,": true, "*,gzip;q=0": false, "gzip\x00": false, "\xff;;=,=;q": false,
	} {
		if got := TakesGzip([]byte(value)); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
