package app

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"optimist/internal/config"
)

// TestAFullDiskIsNoReasonNotToStart: optimist serves on one, and only takes no more dead letters there.
func TestAFullDiskIsNoReasonNotToStart(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "nr_inodes=2"); err != nil {
		t.Skip("no small file system can be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the file system isn't full: %v", err)
	}
	c := config.Default()
	c.Rules[0].OnExhausted = config.ExhaustedDeadLetter
	c.DeadLetters.Folder = dir
	if found := Unusable(c); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}
