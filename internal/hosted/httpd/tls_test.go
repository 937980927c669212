package httpd

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	pair := a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return &authority{pair.Leaf, pair.PrivateKey.(crypto.Signer)}
}

// issue makes a certificate. It is self-signed if the authority has no certificate yet.
func (a *authority) issue(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func (a *authority) forServer(t *testing.T) tls.Certificate {
	return a.issue(t, &x509.Certificate{DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func (a *authority) forClient(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	change(c)
	return a.issue(t, c)
}

// writePair writes a certificate and its key as files.
func writePair(t *testing.T, files conf.TLS, pair tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	write(t, files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func tlsFiles(t *testing.T) conf.TLS {
	dir := t.TempDir()
	return conf.TLS{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca"), Identity: true}
}

// TestTLS_Certificates checks which principal a certificate or a token yields. If a CA is removed, its certificates
// are refused, even over open connections.
func TestTLS_Certificates(t *testing.T) {
	mcptest.NoLeaks(t)
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	files := tlsFiles(t)
	writePair(t, files, ours.forServer(t))
	write(t, files.ClientCA, ours.pem())
	served, err := LoadTLS(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := guardedBy(t, "", "a")
	o.Certificates = true
	v := verifierOf(o)
	s := serve(t, Options{Endpoint: whoami, Identity: v.Verifier, TLS: served})

	roots := x509.NewCertPool()
	roots.AddCert(ours.certificate)
	connect := func(certificates ...tls.Certificate) func(token string) (int, string) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: "localhost",
			// Like an attacker, the client sends its certificate even if the server does not trust the CA.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &append(certificates, tls.Certificate{})[0], nil
			},
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return func(token string) (int, string) {
			request, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+s.addr+"/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				return 0, err.Error()
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			return response.StatusCode, string(body)
		}
	}
	spiffe, _ := url.Parse("spiffe://example.com/agent")
	uri := func(c *x509.Certificate) {
		c.URIs, c.DNSNames = []*url.URL{spiffe}, []string{"a.example.com"}
	}
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		token        string
		status       int
		who          string
	}{
		"a URI":         {[]tls.Certificate{ours.forClient(t, uri)}, "", 200, "certificate spiffe://example.com/agent"},
		"a DNS name":    {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) { c.DNSNames = []string{"A.example.com"} })}, "", 200, "certificate DNS:a.example.com"},
		"a common name": {[]tls.Certificate{ours.forClient(t, func(*x509.Certificate) {})}, "", 401, ""},
		// Rights refer to principals by name. The names in these certificates look like the names of a user or a
		// token.
		"a URI of a user": {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", User: url.User("ann"), Host: "login.example.com"}}
		})}, "", 401, ""},
		"an address of a user": {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) { c.URIs = []*url.URL{{Path: "ann@login.example.com"}} })}, "", 401, ""},
		"a URI of a token":     {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) { c.URIs = []*url.URL{{Path: "ci"}} })}, "", 401, ""},
		"a DNS name of a user": {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) { c.DNSNames = []string{"ann@login.example.com"} })}, "", 401, ""},
		"a token too":          {[]tls.Certificate{ours.forClient(t, uri)}, "mcpx_a", 200, "token a"},
		"a wrong token too":    {[]tls.Certificate{ours.forClient(t, uri)}, "mcpx_b", 401, ""},
		"a token":              {nil, "mcpx_a", 200, "token a"},
		"nothing":              {nil, "", 401, ""},
		"of others":            {[]tls.Certificate{theirs.forClient(t, uri)}, "", 0, ""},
		"expired":              {[]tls.Certificate{ours.forClient(t, func(c *x509.Certificate) { uri(c); c.NotAfter = time.Now().Add(-time.Minute) })}, "", 0, ""},
	} {
		status, who := connect(test.certificates...)(test.token)
		if status != test.status || test.who != "" && who != test.who {
			t.Errorf("%s: %d %s, want %d %s", name, status, who, test.status, test.who)
		}
	}
	open := connect(ours.forClient(t, uri))
	if status, who := open(""); status != 200 {
		t.Fatal(status, who)
	}
	write(t, files.ClientCA, theirs.pem())
	next, _, err := served.look()
	if err != nil {
		t.Fatal(err)
	}
	served.now.Store(next)
	if status, who := open(""); status != 401 {
		t.Errorf("of an authority that is gone: %d %s", status, who)
	}
	if status, _ := connect(theirs.forClient(t, uri))(""); status != 200 {
		t.Errorf("of the new authority: %d", status)
	}
}

// TestTLS_Follow: changed files are used within ten seconds. If only one file of a pair was replaced, the old pair
// stays in use.
func TestTLS_Follow(t *testing.T) {
	ours := newAuthority(t, "ours")
	files := tlsFiles(t)
	files.ClientCA = ""
	first, second := ours.forServer(t), ours.forServer(t)
	writePair(t, files, first)
	var mu sync.Mutex
	var lines bytes.Buffer
	served, err := LoadTLS(files, slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return lines.Write(p) }), nil)))
	if err != nil {
		t.Fatal(err)
	}
	log := func() string {
		mu.Lock()
		defer mu.Unlock()
		return lines.String()
	}
	inForce := func() []byte { return served.now.Load().config.Certificates[0].Certificate[0] }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go served.follow(ctx) // ends when cancel is called
		look := func() {
			time.Sleep(lookEvery)
			synctest.Wait()
		}
		half, err := os.ReadFile(files.Key)
		if err != nil {
			t.Fatal(err)
		}
		writePair(t, files, second)
		whole, err := os.ReadFile(files.Key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, files.Key, half)
		look()
		look()
		if !bytes.Equal(inForce(), first.Certificate[0]) || strings.Count(log(), "are invalid") != 1 {
			t.Errorf("half of a pair:\n%s", log())
		}
		if err := os.Remove(files.Key); err != nil {
			t.Fatal(err)
		}
		look()
		look()
		if !bytes.Equal(inForce(), first.Certificate[0]) || strings.Count(log(), "are invalid") != 2 {
			t.Errorf("no key:\n%s", log())
		}
		write(t, files.Key, whole)
		look()
		if !bytes.Equal(inForce(), second.Certificate[0]) {
			t.Errorf("the whole pair:\n%s", log())
		}
	})
}
