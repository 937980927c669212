package httpd

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// lookEvery is the time between two checks of the certificate files. Each check reads the files. Their modification times would not
// help in Kubernetes, where the files are symbolic links whose targets change.
const lookEvery = 10 * time.Second

// TLS holds the certificates of the server, and reloads changed files while Serve runs.
type TLS struct {
	files conf.TLS
	log   *slog.Logger
	now   atomic.Pointer[certificates]
	seen  [3][]byte // contents of the files at the last check
}

// certificates are what the files contain, parsed.
type certificates struct {
	config *tls.Config
	roots  map[string]bool // DER of the CAs that may sign client certificates; nil without ClientCA
}

// LoadTLS reads the files. It returns an error if a file is invalid.
func LoadTLS(files conf.TLS, log *slog.Logger) (*TLS, error) {
	t := &TLS{files: files, log: log}
	next, _, err := t.look()
	if err != nil {
		return nil, err
	}
	t.now.Store(next)
	return t, nil
}

// look reads the files. changed is false if the result is that of the last check: the files have the same contents, or the same
// file still cannot be read. next is nil if nothing has changed, or after an error.
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
		// HTTP/2 has no advantage for MCP clients, and would need limits of its own.
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

// follow reads the files every lookEvery until ctx ends, and uses changed ones. If a file is invalid, for example because the
// certificate is already new and its key is not, the previous certificates stay in use.
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
			t.log.Error("the changed certificates are invalid; the previous ones stay in use", "err", err)
		case next != nil:
			t.now.Store(next)
			t.log.Info("certificates loaded again", "cert", t.files.Cert)
		}
	}
}

// config returns the TLS config for the listener. Each handshake uses the certificates that are current at that time.
func (t *TLS) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now.Load().config, nil },
	}
}

// trusted refuses a request if the CA of its client certificate is not trusted any more, although it was trusted during the
// handshake. A client certificate that is still trusted proves its connection (see [connections]).
func (t *TLS) trusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if roots := t.now.Load().roots; r.TLS != nil && !trusts(roots, r.TLS.VerifiedChains) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the certificate is not trusted any more", http.StatusUnauthorized)
			return
		}
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			whose := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
			if !connectionOf(r.Context()).prove(r.Context(), string(whose[:])) {
				noPlace(w)
				return
			}
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
	return len(chains) == 0 // the handshake has accepted a client without a certificate
}
