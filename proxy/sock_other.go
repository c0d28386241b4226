//go:build !unix

package proxy

// sock reads and writes through net.Conn where sockets can't be had.
type sock struct{ c *conn }

func (s *sock) init(c *conn) { s.c = c }

// each would serve in turns.
func (s *sock) each(func(fd uintptr) bool) {}

func (s *sock) read(p []byte) (int, error) {
	s.c.waiting()
	return s.c.nc.Read(p)
}

// peekRead would read without waiting.
func (s *sock) peekRead([]byte) int { return 0 }

func (s *sock) write(p []byte) error { return s.slowWrite(p) }
