package engine

import (
	"net/http"
	"testing"
)

func TestASecuredNodeAsksForCredentials(t *testing.T) {
	Long(t)
	e, err := StartSecured(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Stop() }()
	if a, err := e.Do(t.Context(), http.MethodGet, "/", ""); err != nil || a.Status != http.StatusOK {
		t.Errorf("the administrator: %d %s %v", a.Status, a.Body, err)
	}
	e.user = nil
	if a, err := e.Do(t.Context(), http.MethodGet, "/", ""); err != nil || a.Status != http.StatusUnauthorized {
		t.Errorf("nobody: %d %s %v", a.Status, a.Body, err)
	}
}
