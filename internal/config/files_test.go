package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestAllKeysOfFilesAreFound: a key of a file that isn't among them would be relative to where optimist is started, and check wouldn't look
// for the file.
func TestAllKeysOfFilesAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, f := range new(Config).Files() {
		found[f.Key] = true
	}
	for key := range leaves(new(Config)) {
		if strings.HasSuffix(key, "_file") != found[key] {
			t.Errorf("%s: a file's: %v, found: %v", key, strings.HasSuffix(key, "_file"), found[key])
		}
	}
	c, err := Parse("/etc/optimist/o.yaml", []byte("undo: {auth: {basic_file: undo}}\nlisten_tls: {cert_file: /a, key_file: b}\n"), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Undo.Auth.BasicFile, c.ListenTLS.CertFile, c.ListenTLS.KeyFile); got != "/etc/optimist/undo/a/etc/optimist/b" {
		t.Error(got)
	}
}
