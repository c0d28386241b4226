//go:build !unix

package deadletter

import (
	"errors"
	"os"
)

// lockFile refuses: nothing is known of how files are locked here.
func lockFile(*os.File) error { return errors.ErrUnsupported }
