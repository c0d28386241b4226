package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestAMisspeltVariableIsSaid(t *testing.T) {
	for name, want := range map[string]string{
		"OPTIMIST_MODDE":        "OPTIMIST_MODDE is ignored; did you mean OPTIMIST_MODE?",
		"OPTIMIST_ADMIN_TOKEN":  "did you mean OPTIMIST_ADMIN_TOKEN_FILE?",
		"OPTIMIST_MODE":         "",
		"OPTIMIST_SERVICE_HOST": "",
		"OPTIMIST_PORT":         "",
		"OTHER_MODDE":           "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "guard")
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), []string{"version"}, &stdout, &stderr); status != exitOK {
				t.Fatalf("%d: %s", status, &stderr)
			}
			if got := stderr.String(); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%q is said, want %q", got, want)
			}
		})
	}
}
