package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimist/internal/config"
)

// TestAFolderOfDeadLettersThatCannotBeWrittenIsFoundBeforeTheStart: nobody can make anything in /proc, not even root.
func TestAFolderOfDeadLettersThatCannotBeWrittenIsFoundBeforeTheStart(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("this system has no /proc")
	}
	dir := t.TempDir()
	unusable := func(folder string) config.Problems {
		c := config.Default()
		c.Rules[0].OnExhausted = config.ExhaustedDeadLetter
		c.DeadLetters.Folder = folder
		return Unusable(c)
	}
	if found := unusable("/proc/letters"); len(found) != 1 || !strings.Contains(found[0].Message, "nothing can be written in /proc here") {
		t.Errorf("found %v", found)
	}
	for _, folder := range []string{dir, filepath.Join(dir, "new", "letters")} {
		if found := unusable(folder); len(found) != 0 {
			t.Errorf("%s: found %v", folder, found)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
