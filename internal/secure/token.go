package secure

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"time"
)

// minToken is how long a token must be, in bytes. A shorter one can be found by trying.
const minToken = 16

// Token is a secret that a request has to bring. Make it with NewToken.
type Token struct{ file *followed[[sha256.Size]byte] }

// NewToken reads a token from a file, without the line's end. A file that changes counts within a second: the old token is good for
// nothing then. The error holds nothing of the file's content.
func NewToken(name string, log *slog.Logger, now func() time.Time) (*Token, error) {
	f, err := follow(log, now, func(files [][]byte) ([sha256.Size]byte, error) {
		token := bytes.TrimRight(files[0], "\r\n")
		if len(token) < minToken || bytes.ContainsFunc(token, unsent) {
			return [sha256.Size]byte{}, fmt.Errorf("%s: want one line with a token of %d characters or more, without spaces", name, minToken)
		}
		return sha256.Sum256(token), nil
	}, name)
	if err != nil {
		return nil, err
	}
	return &Token{f}, nil
}

// unsent reports whether a character can't stand in a token that is sent in a header.
func unsent(r rune) bool { return r <= ' ' || r > '~' }

// Matches reports whether given is the token. It takes equally long for all that isn't.
func (t *Token) Matches(given []byte) bool {
	want, got := t.file.get(), sha256.Sum256(given)
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
