package intercept

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spool keeps bytes in memory up to a bound, and beyond it in a file without a name: it is gone when the process is, however that ends.
// The zero value is empty. It is for one goroutine.
type spool struct {
	memory []byte
	file   *os.File
	size   int64
}

// spoolMemory is how many bytes a spool keeps in memory.
const spoolMemory = 1 << 20

// CheckSpool reports why no spool can have a file now: the answer to a large bulk would find no place.
func CheckSpool() error {
	f, err := nameless()
	if err != nil {
		return err
	}
	_, err = f.Write([]byte{0})
	return errors.Join(err, f.Close())
}

// nameless opens a file in the temporary folder, and takes its name away.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "optimist-bulk-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Write implements io.Writer. Its error is that of the disk, which has no room, for example. Nothing may be written after it.
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.memory)+len(p) > spoolMemory {
		f, err := nameless()
		if err != nil {
			return 0, err
		}
		s.file = f
		if _, err := f.Write(s.memory); err != nil {
			return 0, err
		}
		s.memory = nil
	}
	if s.file == nil {
		s.memory = append(s.memory, p...)
	} else if _, err := s.file.Write(p); err != nil {
		return 0, err
	}
	s.size += int64(len(p))
	return len(p), nil
}

// reader reads what was written, from its beginning. Nothing may be written after it.
func (s *spool) reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.memory)
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// Close gives everything back.
func (s *spool) Close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name any more, and nobody reads it again
	}
	*s = spool{}
}
