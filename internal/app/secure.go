package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"optimist/internal/admin"
	"optimist/internal/config"
	"optimist/internal/obs"
	"optimist/internal/secure"
)

// secure reads the listeners' certificates and the admin listener's token. It refuses an admin listener that everybody could use: what the
// configuration's own check can't see is what the name in an address stands for.
func (a *App) secure(c *config.Config) (err error) {
	if a.dataTLS, err = listenerTLS(&c.ListenTLS, false, a.log); err != nil {
		return fmt.Errorf("listen_tls: %w", err)
	}
	a.warnOfClearText()
	if a.adminPlace == nil {
		return nil
	}
	a.access = admin.Access{Certificates: c.AdminTLS.ClientCAFile != ""}
	if c.AdminTokenFile != "" {
		if a.access.Token, err = secure.NewToken(c.AdminTokenFile, a.log, nil); err != nil {
			return fmt.Errorf("admin_token_file: %w", err)
		}
	}
	addr := a.adminPlace.Addr().String()
	if !c.AdminIsProtected() && !config.Loopback(addr) {
		return fmt.Errorf("admin: %s is %s, which isn't a loopback address: set admin_token_file, or admin_tls with a client_ca_file",
			c.Admin, addr)
	}
	conf, err := listenerTLS((*config.ServerTLS)(&c.AdminTLS), true, a.log)
	switch {
	case err != nil:
		return fmt.Errorf("admin_tls: %w", err)
	case conf != nil:
		a.adminPlace = tls.NewListener(a.adminPlace, conf)
	case !config.Loopback(addr):
		a.log.Warn("THE ADMIN LISTENER HAS NO TLS AND IS NOT ON A LOOPBACK ADDRESS: its token crosses the network in clear text",
			obs.KeyAddr, addr)
	}
	return nil
}

// warnOfClearText warns where everybody between the clients and here can read their credentials.
func (a *App) warnOfClearText() {
	if addr := a.data.Addr().String(); a.dataTLS == nil && !config.Loopback(addr) {
		a.log.Warn("THE DATA PORT HAS NO TLS AND IS NOT ON A LOOPBACK ADDRESS: credentials and documents of clients on other machines "+
			"cross the network in clear text; set listen_tls, or put something in front that ends TLS", obs.KeyAddr, addr)
	}
}

// listenerTLS is the TLS of a listener, or nil.
func listenerTLS(t *config.ServerTLS, clientsMay bool, log *slog.Logger) (*tls.Config, error) {
	if t.CertFile == "" {
		return nil, nil
	}
	return secure.NewTLS(secure.Options{
		Files: secure.Files{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile}, ClientsMay: clientsMay, Log: log,
	})
}
