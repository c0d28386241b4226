package undo

import (
	"encoding/json"
	"strings"
	"testing"

	"optimist/internal/es"
	"optimist/internal/wire"
)

// TestANoteOfATenantIsReadAsItWasWritten: an earlier program's note has none, and one without a tenant is written as that program did.
func TestANoteOfATenantIsReadAsItWasWritten(t *testing.T) {
	plain, err := json.Marshal(note{Index: "docs"})
	if err != nil || strings.Contains(string(plain), `"f"`) || strings.Contains(string(plain), `"q"`) {
		t.Errorf("without a tenant: %s, %v", plain, err)
	}
	var words []string
	for _, want := range []Tenant{
		{}, {Params: es.Bytes("org=a")}, {Fields: [][2]es.Bytes{{es.Bytes("X-Tenant"), es.Bytes("a\xff")}}},
		{Fields: [][2]es.Bytes{{es.Bytes("x-tenant"), es.Bytes("a")}, {es.Bytes("x-org"), es.Bytes("b")}}, Params: es.Bytes("org=a")},
	} {
		text, err := json.Marshal(note{Index: "docs", Tenant: want})
		if err != nil {
			t.Fatal(err)
		}
		var n note
		if err := json.Unmarshal(text, &n); err != nil || n.Tenant.word() != want.word() || len(n.Tenant.Fields) != len(want.Fields) {
			t.Errorf("%s is read as %+v, %v", text, n.Tenant, err)
		}
		words = append(words, want.word())
	}
	for i := range words {
		for k := range i {
			if words[i] == words[k] {
				t.Errorf("%q stands for two tenants", words[i])
			}
		}
	}
}

// TestOnlyWhatSaysTheTenantIsNoted: without a function that picks that, nothing of a request is kept. It may have credentials.
func TestOnlyWhatSaysTheTenantIsNoted(t *testing.T) {
	w := &Write{Fields: []wire.Field{{Name: []byte("Authorization"), Value: []byte("secret")}}, Params: []byte("api_key=secret")}
	if got := New(Options{}).tenantOf(w); got.word() != "" {
		t.Errorf("kept %s", got.word())
	}
}
