package coding

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
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
