package app

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// elsewhere is a listener that says that it is at an address.
type elsewhere struct {
	net.Listener
	addr string
}

func (e elsewhere) Addr() net.Addr { return e }

func (e elsewhere) Network() string { return "tcp" }

func (e elsewhere) String() string { return e.addr }

func TestClearTextIsLoudInTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		addr string
		tls  *tls.Config
		want bool
	}{
		"on loopback":       {"127.0.0.1:9280", nil, false},
		"IPv6 loopback":     {"[::1]:9280", nil, false},
		"everywhere":        {"[::]:9280", nil, true},
		"a network":         {"10.0.0.1:9280", nil, true},
		"a network, by TLS": {"10.0.0.1:9280", new(tls.Config), false},
	} {
		log := new(enginetest.Log)
		a := &App{log: slog.New(slog.NewTextHandler(log, nil)), data: elsewhere{addr: c.addr}, dataTLS: c.tls}
		a.warnOfClearText()
		if strings.Contains(log.String(), "THE DATA PORT HAS NO TLS") != c.want {
			t.Errorf("%s: %q", name, log)
		}
	}
}

// What the configuration's check can't see: a name that stands for another address than a loopback one.
func TestAdminListenerAtAnAddressThatEverybodyReachesIsRefused(t *testing.T) {
	a := &App{log: slog.New(slog.DiscardHandler), data: elsewhere{addr: "127.0.0.1:9280"}, adminPlace: elsewhere{addr: "10.0.0.1:9281"}}
	if err := a.secure(&config.Config{Admin: "localhost:9281"}); err == nil || !strings.Contains(err.Error(), "isn't a loopback address") {
		t.Error(err)
	}
}
