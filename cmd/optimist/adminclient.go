package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"optimist/internal/admin"
	"optimist/internal/config"
	"optimist/internal/printable"
	"optimist/internal/upstream"
)

// maxAdminAnswer is how much of an admin listener's answer is read: a page of a thousand locks fits.
const maxAdminAnswer = 16 << 20

// whereAdmin is for who has asked at a wrong address, the data port's for instance.
const whereAdmin = "Its admin address is in the first lines of its log; name it with --admin"

// adminFlag names the optimist that is asked, and what it wants to see. It is asked by TLS if there is an authority or a certificate, or if
// the address begins with https://, where the system's authorities count.
type adminFlag struct {
	Admin          string `help:"Admin listener. Default ${default}." default:"127.0.0.1:9281" env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
	AdminTokenFile string `help:"File with its token." env:"OPTIMIST_ADMIN_TOKEN_FILE" placeholder:"FILE"`
	AdminCAFile    string `help:"File with the authority of its TLS certificate." env:"OPTIMIST_ADMIN_CA_FILE" placeholder:"FILE"`
	AdminCertFile  string `help:"Certificate to show it." env:"OPTIMIST_ADMIN_CERT_FILE" placeholder:"FILE"`
	AdminKeyFile   string `help:"The certificate's key." env:"OPTIMIST_ADMIN_KEY_FILE" placeholder:"FILE"`
}

// adminClient asks the admin listener of a running optimist.
type adminClient struct {
	command string // of this program, for its usage errors
	where   adminFlag
	// authorization is by which the writes of dead letters are made again; empty: they have none.
	authorization string
	timeout       time.Duration // 0: 30 seconds
}

// adminError is why an admin listener refuses a request.
type adminError struct{ Type, Reason string }

func (e *adminError) Error() string { return printable.Line(e.Reason) }

// do makes one request; body is JSON, or nil. It makes of an answer with status 200 what into is, and of another one an *adminError. It
// returns the answer's body, too.
func (c *adminClient) do(ctx context.Context, method, path string, body []byte, into any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.timeout, 30*time.Second))
	defer cancel()
	given, secure := strings.CutPrefix(c.where.Admin, "https://")
	addr, err := reachable(ctx, strings.TrimPrefix(given, "http://"))
	if err != nil {
		return nil, usageError("optimist %s: %v", c.command, err)
	}
	scheme, transport := "http://", &http.Transport{DisableKeepAlives: true}
	if secure || c.where.AdminCAFile != "" || c.where.AdminCertFile != "" || c.where.AdminKeyFile != "" {
		scheme = "https://"
		if transport.TLSClientConfig, err = c.where.tls(given); err != nil {
			return nil, usageError("optimist %s: %v", c.command, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, scheme+addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.authorization != "" {
		req.Header.Set(admin.AuthorizationField, c.authorization)
	}
	if err := c.where.authorize(req); err != nil {
		return nil, usageError("optimist %s: %v", c.command, err)
	}
	// an answer that leads elsewhere would lead the token there
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("no optimist answers at %s: %w%s\n%s", c.where.Admin, err,
			adviceFor(scheme, "--admin-ca-file", "--admin", err), whereAdmin)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && json.Unmarshal(text, into) == nil {
		return text, nil
	}
	var failure struct{ Error adminError }
	if json.Unmarshal(text, &failure) == nil && failure.Error.Reason != "" && resp.StatusCode != http.StatusOK {
		return nil, &failure.Error
	}
	return nil, fmt.Errorf("%s isn't the admin listener of an optimist: it answered %s: %s\n%s", c.where.Admin,
		printable.Line(resp.Status), printable.Line(string(text[:min(len(text), 300)])), whereAdmin)
}

// adviceFor is what to do about the error of a request, as a clause behind it. One flag names the file of authorities, the other
// the server.
func adviceFor(scheme, authorities, server string, err error) string {
	if scheme == "https://" {
		return upstream.HandshakeAdvice(err, authorities, server)
	}
	return upstream.PlainAdvice(err)
}

// authorize puts the token into a request.
func (f *adminFlag) authorize(req *http.Request) error {
	if f.AdminTokenFile == "" {
		return nil
	}
	token, err := config.Secret("--admin-token-file", f.AdminTokenFile)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// tls is for a listener that speaks TLS at an address as it was given: whatever the name in it stands for, the certificate must have the
// name. For every host it must have the address of this machine that is asked.
func (f *adminFlag) tls(addr string) (*tls.Config, error) {
	conf, err := trusting("--admin-ca-file", f.AdminCAFile)
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && !config.IsEveryHost(host) {
		conf.ServerName = host
	}
	return conf, showing(conf, "--admin-", f.AdminCertFile, f.AdminKeyFile)
}

// showing gives a client's TLS the certificate of two flags, which begin alike; without them there is none.
func showing(conf *tls.Config, flags, cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return fmt.Errorf("%[1]scert-file and %[1]skey-file belong together, and one of them is missing", flags)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%[1]scert-file and %[1]skey-file: %[2]w", flags, err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return nil
}

// trusting is the TLS of a client that trusts the authorities in the file that a flag names, or, without one, the system's.
func trusting(flag, file string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return conf, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: there is no certificate in %s", flag, file)
	}
	return conf, nil
}

// reachable turns a host's name into its address: the admin listener doesn't take changes under names that it doesn't know.
// Without a host it is this machine.
func reachable(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is not an address; write host and port, as in 127.0.0.1:9281", addr)
	}
	if config.IsEveryHost(host) {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("the host of %q is unknown: %w", addr, err)
	}
	return net.JoinHostPort(found[0], port), nil
}

// eachPage asks for one page of a list after the other, and hands them to take, which returns where the next one begins: "" after the last.
func eachPage[P any](ctx context.Context, c *adminClient, path string, query url.Values, take func(*P) (next string, err error)) error {
	for {
		var page P
		if _, err := c.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		next, err := take(&page)
		if err != nil || next == "" {
			return err
		}
		query.Set("after", next)
	}
}
