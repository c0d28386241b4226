package proxy

// maxSlowWrite is how many bytes are written at once where the progress of a write can't be seen.
const maxSlowWrite = 4 << 10

// slowWrite writes through net.Conn.
func (s *sock) slowWrite(p []byte) error {
	s.c.state.writing.Store(1)
	defer s.c.state.writing.Store(0)
	for len(p) > 0 {
		n, err := s.c.nc.Write(p[:min(len(p), maxSlowWrite)])
		s.c.state.given.Add(int64(n))
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
