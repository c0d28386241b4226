//go:build !unix

package notes

import (
	"errors"
	"os"
)

// lock refuses: nothing is known of how files are mapped here.
func lock(*os.File) error { return errors.ErrUnsupported }

func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) {}
