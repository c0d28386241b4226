package engine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// StartSecured brings up an OpenSearch node that asks for credentials, by HTTP without TLS. Do sends those of its administrator: other
// users are made by the plugin's own interface, below /_plugins/_security/api. The first start on a machine fetches the jars.
func StartSecured(ctx context.Context) (*Engine, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	kit, err := prepare(ctx, secured)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "optimist-"+secured.String()+"-")
	if err != nil {
		return nil, fmt.Errorf("folder for %s: %w", secured.Title(), err)
	}
	e, err := startSecured(ctx, kit, home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return e, nil
}

func startSecured(ctx context.Context, k kit, home string) (*Engine, error) {
	config := filepath.Join(home, "node_1", "config")
	if err := os.CopyFS(filepath.Join(config, "opensearch-security"), os.DirFS(filepath.Join(k.plugin(), "config"))); err != nil {
		return nil, err
	}
	if err := writeCertificate(config); err != nil {
		return nil, err
	}
	p := plan{kind: secured, home: home, cluster: filepath.Base(home), name: "node1"}
	node, err := launch(p.command(k, []string{"discovery.type=single-node", "http.port=0", "transport.port=0"}), home)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, secured.Title(), err)
	}
	// The password is that of the plugin's own demonstration.
	e := &Engine{Kind: secured, node: node, user: url.UserPassword("admin", "admin")}
	address, err := node.ready(ctx)
	e.URL = "http://" + address
	for err == nil && e.introduce(ctx) != nil { // until the plugin has made its own index
		select {
		case <-time.After(200 * time.Millisecond):
		case <-node.done:
			err = errors.New("it ended")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		node.kill()
		return nil, fmt.Errorf("%w: %s: %w\n%s", ErrStart, secured.Title(), err, node.logTail())
	}
	return e, nil
}

// writeCertificate makes what the plugin asks for between nodes, of which there is one: a certificate that it signs itself.
func writeCertificate(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node1"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, DNSNames: []string{"localhost"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(folder, "node.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		writeFile(filepath.Join(folder, "node.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}
