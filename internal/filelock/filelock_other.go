//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// Take refuses: nothing is known of how files are locked here.
func Take(*os.File) error { return errors.ErrUnsupported }
