//go:build !unix

package notefile

import (
	"errors"
	"os"
)

// mapFile refuses: nothing is known of how files are mapped here.
func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) {}
