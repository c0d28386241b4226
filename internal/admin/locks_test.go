package admin

import (
	"context"
	"errors"
	"testing"
)

func TestLocksArePassedOnAsTheyWereNamed(t *testing.T) {
	var said string
	s := serve(t)
	s.server.o.Locks = func(_ context.Context, method string, path, query, body []byte) (int, []byte, error) {
		said = method + " " + string(path) + "?" + string(query) + " " + string(body)
		if string(query) == "fail" {
			return 0, nil, errors.New("closing")
		}
		return 200, []byte(`{}`), nil
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/_optimist/locks", "", 200, "GET ? "},
		{"GET", "/_optimist/locks?owner=a%20b", "", 200, "GET ?owner=a%20b "},
		{"GET", "/_optimist/locks/_lock/global/a%2Fb", "", 200, "GET /_lock/global/a%2Fb? "},
		{"HEAD", "/_optimist/locks/_lock/global/a", "", 200, "GET /_lock/global/a? "},
		{"DELETE", "/_optimist/locks/_lock/global/a?token=7", "", 200, "DELETE /_lock/global/a?token=7 "},
		{"POST", "/_optimist/locks/_release", `{"owner":"a"}`, 200, `POST /_release? {"owner":"a"}`},
		{"GET", "/_optimist/locks?fail", "", 503, "GET ?fail "},
		{"GET", "/_optimist/locks/_release", "", 405, ""},
		{"DELETE", "/_optimist/locks", "", 405, ""},
		{"POST", "/_optimist/locks/_lock/global/a", "", 405, ""},
		{"PUT", "/_optimist/locks/_lock/global/a", "", 405, ""},
		{"GET", "/_optimist/./locks", "", 400, ""},
		{"GET", "/_optimist/lockset", "", 404, ""},
	} {
		said = ""
		if status, body := s.do(t, c.method, c.path, c.body, asJSON); status != c.status || said != c.want {
			t.Errorf("%s %s: %d %q, want %d %q\n%s", c.method, c.path, status, said, c.status, c.want, body)
		}
	}
}

func TestTheListOfLocksIsForPeople(t *testing.T) {
	s := serve(t)
	s.server.o.Locks = func(context.Context, string, []byte, []byte, []byte) (int, []byte, error) {
		return 200, []byte(`{"locks":[]}`), nil
	}
	if _, body := s.do(t, "GET", "/_optimist/locks", ""); body != "{\n  \"locks\": []\n}\n" {
		t.Error(body)
	}
}

// TestOtherSitesSeeAndReleaseNoLocks: a token releases a lock, and the list has all of them.
func TestOtherSitesSeeAndReleaseNoLocks(t *testing.T) {
	s := serve(t)
	s.server.o.Locks = func(context.Context, string, []byte, []byte, []byte) (int, []byte, error) {
		t.Error("passed on")
		return 200, []byte(`{}`), nil
	}
	for _, line := range [][2]string{{"GET", "/_optimist/locks"}, {"GET", "/_optimist/locks/_lock/global/a"}, {"DELETE", "/_optimist/locks/_lock/global/a"},
		{"POST", "/_optimist/locks/_release"}} {
		if status, _ := s.do(t, line[0], line[1], "", "Host: evil.example:9281", asJSON); status != 403 {
			t.Errorf("%v under a rebound name: %d", line, status)
		}
	}
	for _, line := range [][2]string{{"DELETE", "/_optimist/locks/_lock/global/a"}, {"POST", "/_optimist/locks/_release"}} {
		if status, _ := s.do(t, line[0], line[1], "{}", "Content-Type: text/plain"); status != 403 {
			t.Errorf("%v as a form: %d", line, status)
		}
	}
}

func TestWhereThereAreNoLocksThereIsNoPathForThem(t *testing.T) {
	s := serve(t)
	if status, _ := s.do(t, "GET", "/_optimist/locks", ""); status != 404 {
		t.Errorf("%d", status)
	}
}
