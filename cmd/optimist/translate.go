package main

import (
	"errors"
	"time"

	"optimist/internal/config"
	"optimist/internal/obs"
	"optimist/internal/upstream"
	"optimist/proxy"
)

// upstreamConfig is the configuration's upstream as the upstream package wants it. It reads the file with our credentials.
func upstreamConfig(u *config.Upstream) (upstream.Config, error) {
	auth, err := u.Auth.Authorization()
	return upstream.Config{
		URLs: u.URLs,
		TLS: upstream.TLS{CAFile: u.TLS.CAFile, CertFile: u.TLS.CertFile, KeyFile: u.TLS.KeyFile, ServerName: u.TLS.ServerName,
			Insecure: u.TLS.Verify == config.VerifyNone},
		Authorization:  auth,
		ConnectTimeout: u.ConnectTimeout.Std(),
		AcquireTimeout: u.AcquireTimeout.Std(),
		IdleTimeout:    u.IdleTimeout.Std(),
		MaxConns:       u.MaxConnections,
		HealthInterval: offIfZero(u.HealthInterval.Std()),
	}, err
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

// upstreamHooks turn what happens to nodes into metrics and log lines.
func (s *service) upstreamHooks() upstream.Hooks {
	return upstream.Hooks{
		Dialed: func(node string, _ time.Duration, err error) {
			if err == nil {
				return
			}
			reason := upstream.Other
			var connect *upstream.ConnectError
			if errors.As(err, &connect) {
				reason = connect.Reason
			}
			s.metrics.DialFailed(node, string(reason))
		},
		Waited: func(node string, _ time.Duration) { s.metrics.Waited(node) },
		Resent: func(*upstream.Error) { s.metrics.Resent() },
		Ejected: func(node string, err error) {
			s.metrics.Ejected(node)
			s.log.Warn("node left out", obs.KeyNode, node, obs.KeyError, err.Error())
		},
		Returned: func(node string) { s.log.Info("node is back", obs.KeyNode, node) },
		Credentials: func(node string, refusal int) {
			if refusal == 0 {
				s.log.Info("the engine accepts optimist's own credentials (upstream.auth) again", obs.KeyNode, node)
				return
			}
			s.log.Error("the engine refuses optimist's own credentials (upstream.auth): it can't be asked what can be merged",
				obs.KeyNode, node, obs.KeyStatus, refusal)
		},
	}
}

// doorMetrics hands on what the door tells.
type doorMetrics struct{ m *obs.Metrics }

// Request implements proxy.Metrics.
func (d doorMetrics) Request(r *proxy.Done) {
	d.m.Request(r.Kind.String(), r.Status, r.Received, r.Sent)
}

// Failed implements proxy.Metrics.
func (d doorMetrics) Failed(errorType string) { d.m.Failed(errorType) }
