package undo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
	"optimist/internal/wire"
)

// Tenant has those parts of a write's request that name a tenant or a cluster. None of them is a credential. A gateway in front of the
// engine may choose by them where a request goes, so the requests that undo the write have the same parts. The zero value has none.
type Tenant struct {
	Fields [][2]es.Bytes `json:"f,omitempty"` // header fields, each a name and a value, in order of the names
	Params es.Bytes      `json:"q,omitempty"` // parameters of the query, as they stand there
}

func (s *Store) tenantOf(w *Write) (t Tenant) {
	if s.o.Tenant == nil {
		return t
	}
	fields, params := s.o.Tenant(w.Fields, w.Params)
	t.Params = bytes.Clone(params)
	for _, f := range fields {
		t.Fields = append(t.Fields, [2]es.Bytes{bytes.Clone(f.Name), bytes.Clone(f.Value)})
	}
	return t
}

// size is how many bytes the tenant adds to a note.
func (t *Tenant) size() int64 {
	n := len(t.Params)
	for _, f := range t.Fields {
		n += len(f[0]) + len(f[1])
	}
	return int64(n)
}

// word is a text that stands for the tenant: no two tenants have the same. It is empty for the zero value.
func (t *Tenant) word() string {
	if len(t.Fields) == 0 && len(t.Params) == 0 {
		return ""
	}
	var b strings.Builder
	b.Write(t.Params)
	for _, f := range t.Fields {
		fmt.Fprintf(&b, "\n%s:%s", bytes.ToLower(f[0]), f[1]) // neither a field nor a parameter has a line break
	}
	return b.String()
}

// caller has the Store's own credentials, and the tenant's parts.
func (s *Store) caller(t *Tenant) es.Caller {
	by := es.Caller{Fields: []wire.Field{{Name: []byte("Authorization"), Value: []byte(s.o.Authorization)}}, Params: t.Params}
	for _, f := range t.Fields {
		by.Fields = append(by.Fields, wire.Field{Name: f[0], Value: f[1]})
	}
	return by
}

// ask makes one request that writes documents of a tenant.
func (s *Store) ask(ctx context.Context, t *Tenant, req esapi.Request) (es.Answer, error) {
	a, err := es.Ask(ctx, s.o.Upstream, req, es.Way{Caller: s.caller(t), Timeout: s.o.Timeout})
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return a, nil
}

// inOneTenant is how many of the first documents are of one tenant. A request can have documents of one tenant only.
func inOneTenant(all []*target) int {
	n := slices.IndexFunc(all, func(t *target) bool { return t.tenant != all[0].tenant })
	if n < 0 {
		n = len(all)
	}
	return n
}
