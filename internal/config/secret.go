package config

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"unicode"
)

// maxSecret bounds what is read of a secret's file, so that a wrong file name doesn't become a header of megabytes.
const maxSecret = 64 << 10

// Authorization reads the secret's file and makes the header's value of it, or "" if no file is named. Neither the value
// nor any part of it is in the error.
func (a *Auth) Authorization() (string, error) {
	return a.AuthorizationOf(func(key string) string { return "upstream.auth." + key })
}

// AuthorizationOf is Authorization for files that something else names: key is what stands in errors for api_key_file and the others.
func (a *Auth) AuthorizationOf(key func(string) string) (string, error) {
	switch {
	case a.APIKeyFile != "":
		secret, err := Secret(key("api_key_file"), a.APIKeyFile)
		if strings.Contains(secret, ":") {
			secret = base64.StdEncoding.EncodeToString([]byte(secret))
		}
		return header("ApiKey ", secret, err)
	case a.BasicFile != "":
		pair, err := Secret(key("basic_file"), a.BasicFile)
		if err == nil && !strings.Contains(pair, ":") {
			err = fmt.Errorf("%s: %s doesn't hold user:password", key("basic_file"), a.BasicFile)
		}
		return header("Basic ", base64.StdEncoding.EncodeToString([]byte(pair)), err)
	case a.BearerFile != "":
		token, err := Secret(key("bearer_file"), a.BearerFile)
		return header("Bearer ", token, err)
	}
	return "", nil
}

func header(scheme, value string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return scheme + value, nil
}

// Secret is a file's content without the newline at its end. key stands in the error, which has nothing of the content.
func Secret(key, name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	if info.Size() > maxSecret {
		return "", fmt.Errorf("%s: %s is too large for a secret", key, name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	switch {
	case text == "":
		return "", fmt.Errorf("%s: %s is empty", key, name)
	case strings.ContainsFunc(text, unicode.IsControl): // it would break out of the header's line
		return "", fmt.Errorf("%s: %s holds more than one line, or control characters", key, name)
	}
	return text, nil
}
