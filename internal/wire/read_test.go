package wire

import "io"

func newReader(src io.Reader) *Reader {
	r := new(Reader)
	r.Reset(src)
	return r
}

// readAll reads a body to its end.
func readAll(b *Body) (all []byte, err error) {
	for {
		p, err := b.Next()
		switch {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, p...)
	}
}

// remaining is all that is left to read.
func remaining(r *Reader) (all []byte, err error) {
	for {
		all = append(all, r.Peek()...)
		r.Discard(r.Buffered())
		switch err := r.Fill(); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		}
	}
}
