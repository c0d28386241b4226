package app

import (
	"slices"
	"time"

	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/proxy"
)

// UpstreamConfig is the configuration's upstream as the upstream package wants it. It reads the file with our credentials.
func UpstreamConfig(u *config.Upstream) (upstream.Config, error) {
	auth, err := u.Auth.Authorization()
	return upstream.Config{
		URLs:           u.URLs,
		TLS:            upstreamTLS(&u.TLS),
		Authorization:  auth,
		ConnectTimeout: u.ConnectTimeout.Std(),
		AcquireTimeout: u.AcquireTimeout.Std(),
		IdleTimeout:    u.IdleTimeout.Std(),
		MaxConns:       u.MaxConnections,
		HealthInterval: offIfZero(u.HealthInterval.Std()),
	}, err
}

func upstreamTLS(t *config.TLS) upstream.TLS {
	return upstream.TLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
		Insecure: t.Verify == config.VerifyNone}
}

// offIfZero writes "switched off" as those packages do whose zero value means their default.
func offIfZero(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func limits(l *config.Limits) proxy.Limits {
	rate := int(l.MinRate)
	if rate == 0 {
		rate = -1
	}
	return proxy.Limits{
		MaxConnections: l.MaxConnections,
		MaxHeader:      int(l.MaxHeader),
		MaxBody:        l.MaxGuardedBody.Bytes(),
		HeaderTimeout:  l.HeaderTimeout.Std(),
		BodyTimeout:    l.BodyTimeout.Std(),
		WriteTimeout:   l.WriteTimeout.Std(),
		IdleTimeout:    l.IdleTimeout.Std(),
		MinRate:        rate,
	}
}

func sniffing(a config.SniffAnswer) proxy.Sniffing {
	if a == config.SniffPass {
		return proxy.SniffPass
	}
	return proxy.SniffRewrite
}

// readIdentity is how clients are told apart.
func readIdentity(c *config.Sessions, identity *config.Identity) client.Identity {
	id := client.Identity{
		Headers: c.Header.Names(), Traces: c.Header.Traces(),
		Fields: fieldNames(identity), Parameters: wire.NewNames(append(slices.Clone(wire.IdentityParameters), identity.Parameters)...),
		Infer: c.Infer != config.InferNone, Address: c.Infer == config.InferCredentialsAndAddress,
	}
	for _, p := range c.TrustedProxies {
		id.Trusted = append(id.Trusted, p.Prefix)
	}
	return id
}

// fieldNames are the headers that say who asks, or for whom.
func fieldNames(identity *config.Identity) *wire.Names {
	return wire.NewNames(append(slices.Clone(wire.IdentityNames), identity.Fields)...)
}
