package lockrouter_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/share"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// from makes a request from a client's address.
func from(t *testing.T, r *lockrouter.Router, client, target, body string) *lockrouter.Answer {
	t.Helper()
	a, err := r.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte(target), Body: []byte(body),
		Client: share.Of(netip.MustParseAddr(client), 1)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOneClientsLeasesLeaveATreeToOthers: one client without credentials, in many names, with leases that are as large as they may be.
func TestOneClientsLeasesLeaveATreeToOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{MostHeld: 400})
		fat := strings.Repeat(`\u0001`, 1024)
		n := 0
		for ; n < 990; n++ {
			a := from(t, r, "10.0.0.1", fmt.Sprintf("/fs/_lock/tree/%d/%s", n, strings.Repeat("x", 900)), fmt.Sprintf(`{"owner":"o%d","note":"%s"}`, n, fat))
			if a.Status == 201 {
				continue
			}
			if a.Status != 429 || !strings.Contains(string(a.Body), `"lock_tree_full"`) || !strings.Contains(string(a.Body), "room for others") ||
				len(a.Fields) != 2 || string(a.Fields[1].Name) != "Retry-After" {
				t.Fatalf("%d %s %s", a.Status, a.Body, a.Fields)
			}
			break
		}
		docs, err := s.Read(t.Context(), []string{"tree:fs"})
		if err != nil || docs[0] == nil {
			t.Fatal(err, docs)
		}
		if b, _ := json.Marshal(docs[0].Holds); int64(len(b)) > state.Bytes(400)*7/8 || n < 10 {
			t.Errorf("%d leases of %d bytes", n, len(b))
		}
		for i := range 5 {
			if a := from(t, r, "10.0.0.2", fmt.Sprintf("/fs/_lock/tree/late/%d", i), `{"owner":"late"}`); a.Status != 201 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
	})
}
