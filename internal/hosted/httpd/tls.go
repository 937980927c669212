package httpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"mcpx/internal/base/conf"
)

// lookEvery is the time between two looks at the files of certificates. They are read, as
// they are small: in Kubernetes they are links to links, whose targets change.
const lookEvery = 10 * time.Second

// TLSFiles name PEM files.
type TLSFiles = conf.TLS

// TLS has the certificates of the server. It follows their files while Serve runs.
type TLS struct {
	files TLSFiles
	log   *slog.Logger
	now   atomic.Pointer[certificates]
	seen  [3][]byte // of the files, at the last look
}

// certificates are the content of the files, once it was found valid.
type certificates struct {
	config *tls.Config
	roots  map[string]bool // the authorities of clients, by their DER; nil without ClientCA
}

// LoadTLS reads the files. One that is not valid is an error.
func LoadTLS(files TLSFiles, log *slog.Logger) (*TLS, error) {
	t := &TLS{files: files, log: log}
	next, _, err := t.look()
	if err != nil {
		return nil, err
	}
	t.now.Store(next)
	return t, nil
}

// look reads the files; changed is false where they are as at the last look.
func (t *TLS) look() (next *certificates, changed bool, err error) {
	var data [3][]byte
	for i, name := range []string{t.files.Cert, t.files.Key, t.files.ClientCA} {
		if name == "" {
			continue
		}
		if data[i], err = os.ReadFile(name); err != nil {
			changed = t.seen[i] != nil
			t.seen[i] = nil
			return nil, changed, fmt.Errorf("reading the certificates: %w", err)
		}
	}
	for i := range data {
		changed = changed || !bytes.Equal(data[i], t.seen[i])
	}
	t.seen = data
	if !changed {
		return nil, false, nil
	}
	pair, err := tls.X509KeyPair(data[0], data[1])
	if err != nil {
		return nil, true, fmt.Errorf("%s and %s: %w", t.files.Cert, t.files.Key, err)
	}
	next = &certificates{config: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		// HTTP/2 would bring nothing to clients of MCP, but a second set of limits.
		NextProtos: []string{"http/1.1"},
	}}
	if t.files.ClientCA != "" {
		pool, roots, err := authorities(data[2])
		if err != nil {
			return nil, true, fmt.Errorf("%s: %w", t.files.ClientCA, err)
		}
		next.roots, next.config.ClientCAs = roots, pool
		next.config.ClientAuth = tls.RequireAndVerifyClientCert
		if t.files.Identity {
			next.config.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	return next, true, nil
}

func authorities(data []byte) (*x509.CertPool, map[string]bool, error) {
	pool, roots := x509.NewCertPool(), make(map[string]bool)
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, err
		}
		pool.AddCert(certificate)
		roots[string(certificate.Raw)] = true
	}
	if len(roots) == 0 {
		return nil, nil, errors.New("has no certificate")
	}
	return pool, roots, nil
}

// follow puts changed files in force until ctx ends. Files that are not valid, such as a pair of
// which only one half has been written, leave the certificates as they are.
func (t *TLS) follow(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch next, changed, err := t.look(); {
		case err != nil && changed:
			t.log.Error("the changed certificates are not taken; those before stay in force", "err", err)
		case next != nil:
			t.now.Store(next)
			t.log.Info("certificates loaded again", "cert", t.files.Cert)
		}
	}
}

// config is for a listener: each handshake gets the certificates in force.
func (t *TLS) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now.Load().config, nil },
	}
}

// trusted refuses requests over connections whose client's certificate is of an authority
// that has been taken out of the files since the handshake.
func (t *TLS) trusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if roots := t.now.Load().roots; r.TLS != nil && !trusts(roots, r.TLS.VerifiedChains) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the certificate does not count any more", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func trusts(roots map[string]bool, chains [][]*x509.Certificate) bool {
	for _, chain := range chains {
		if roots[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	return len(chains) == 0 // the handshake has decided whether that is enough
}
