package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(content string) string {
		f := filepath.Join(dir, "s")
		if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		auth func(file string) Auth
		file string
		want string
		err  string
	}{
		{func(f string) Auth { return Auth{APIKeyFile: f} }, "aWQ6a2V5\n", "ApiKey aWQ6a2V5", ""},
		{func(f string) Auth { return Auth{APIKeyFile: f} }, "id:key", "ApiKey aWQ6a2V5", ""},
		{func(f string) Auth { return Auth{BasicFile: f} }, "user:pass:word\r\n", "Basic dXNlcjpwYXNzOndvcmQ=", ""},
		{func(f string) Auth { return Auth{BasicFile: f} }, "hunter2", "", "doesn't hold user:password"},
		{func(f string) Auth { return Auth{BearerFile: f} }, "t0ken", "Bearer t0ken", ""},
		{func(f string) Auth { return Auth{BearerFile: f} }, "hunter2\nX-Evil: 1", "", "more than one line"},
		{func(f string) Auth { return Auth{BearerFile: f} }, "\n", "", "is empty"},
		{func(f string) Auth { return Auth{BearerFile: f + "none"} }, "x", "", "no such file"},
		{func(f string) Auth { return Auth{BearerFile: f} }, strings.Repeat("x", maxSecret+1), "", "too large"},
		{func(string) Auth { return Auth{} }, "x", "", ""},
	} {
		a := c.auth(write(c.file))
		got, err := a.Authorization()
		if got != c.want && c.err == "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %q, %v; want %q, %q", a, got, err, c.want, c.err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || got != "") {
			t.Errorf("the secret is in the error, or given with one: %q, %v", got, err)
		}
	}
}
