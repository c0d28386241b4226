package admin

import (
	"context"
	"testing"
)

func TestJournalsArePassedOnAsTheirLocksWereNamed(t *testing.T) {
	var said string
	s := serve(t)
	s.server.o.Undo = func(_ context.Context, r *UndoRequest) (int, any) {
		said = string(r.Lock) + " " + r.Query["owner"]
		return 200, map[string]any{}
	}
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/_optimist/undo", 200, " "},
		{"GET", "/_optimist/undo?owner=a%20b", 200, " a b"},
		{"GET", "/_optimist/undo/_lock/global/a%2Fb?documents=true", 200, "/_lock/global/a%2Fb "},
		{"POST", "/_optimist/undo", 405, ""},
		{"DELETE", "/_optimist/undo/_lock/global/a", 405, ""},
		{"GET", "/_optimist/./undo", 400, ""},
		{"GET", "/_optimist/undone", 404, ""},
	} {
		said = ""
		if status, body := s.do(t, c.method, c.path, "", asJSON); status != c.status || said != c.want {
			t.Errorf("%s %s: %d %q, want %d %q\n%s", c.method, c.path, status, said, c.status, c.want, body)
		}
	}
}

func TestOtherSitesSeeNoJournals(t *testing.T) {
	s := serve(t)
	s.server.o.Undo = func(context.Context, *UndoRequest) (int, any) {
		t.Error("passed on")
		return 200, map[string]any{}
	}
	for _, path := range []string{"/_optimist/undo", "/_optimist/undo/_lock/global/a?documents=true"} {
		if status, _ := s.do(t, "GET", path, "", "Host: evil.example:9281"); status != 403 {
			t.Errorf("%s under a rebound name: %d", path, status)
		}
	}
}
