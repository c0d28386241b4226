package intercept

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/quota"
	"optimist/internal/respond"
	"optimist/internal/session"
)

const (
	// knownFor is how long a client counts as one that the engine knows.
	knownFor = time.Minute
	// maxKnown bounds how many clients are noted. Who makes up clients has none of another address forgotten; one that is forgotten is asked
	// about again.
	maxKnown = 4096
)

// known are clients whose credentials the engine has accepted a while ago. For others optimist writes nothing with its own credentials,
// and reads no journal. It is safe for concurrent use; make it with newKnown.
type known struct {
	until *quota.Shared[identity.Network, session.Credentials, time.Time]
}

func newKnown() *known {
	return &known{until: quota.NewShared[identity.Network, session.Credentials, time.Time](maxKnown)}
}

// has reports whether a client is known now.
func (k *known) has(client session.Credentials, now time.Time) bool {
	until, ok := k.until.Get(client)
	return ok && now.Before(until)
}

// add notes that the engine knew a client when it was asked, and where the client is.
func (k *known) add(from identity.Network, client session.Credentials, asked time.Time) {
	k.until.Add(from, client, asked.Add(knownFor))
}

// refusal is the engine's answer to a client whose credentials it refuses. It is nil where the engine knows the client. An error says that
// the engine can't be asked; it is idempotency.ErrStore.
func (i *Interceptor) refusal(ctx context.Context, r *request) (*respond.Answer, error) {
	return i.refusalOf(ctx, r, i.known, http.MethodGet, "/")
}

// refusalOf is refusal by a request with that method and path, which the client may be refused alone. Those whom the engine knows by it are
// noted in accepted.
func (i *Interceptor) refusalOf(ctx context.Context, r *request, accepted *known, method, path string) (*respond.Answer, error) {
	route, now := r.Client().Route, time.Now()
	if accepted.has(route, now) {
		return nil, nil
	}
	res, err := es.Refusal(ctx, i.Upstream, r.Caller(), method, path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the engine can't be asked who the client is: %w", err)
	case res != nil:
		return respond.FromEngine(res), nil
	}
	accepted.add(r.Place().Network, route, now)
	return nil, nil
}
