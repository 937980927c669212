package identity

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"mcpx/internal/caller"
)

// certificates is the first word of the ID of a principal that a certificate proves.
const certificates = "certificate"

// ofCertificate makes the principal of a client's verified certificate. Its name is the first
// URI of the certificate, as workloads have one (SPIFFE), else the first DNS name. The common
// name does not count: CAs verify URIs and DNS names, but not that. The expiry is checked here
// too, as a connection may live longer than the certificate.
func ofCertificate(c *x509.Certificate, now time.Time) (*caller.Principal, error) {
	name := ""
	switch {
	case now.After(c.NotAfter):
		return nil, invalid(errors.New("the certificate has expired"))
	case len(c.URIs) > 0:
		name = c.URIs[0].String()
	case len(c.DNSNames) > 0:
		name = "DNS:" + strings.ToLower(c.DNSNames[0])
	default:
		return nil, invalid(errors.New("the certificate has no URI and no DNS name"))
	}
	// Rights know the kind of a principal by the form of its name: NAME is a token, SUB@ISSUER a
	// user. A certificate must not have such a name.
	if strings.Contains(name, "@") || !strings.Contains(name, ":") {
		return nil, invalid(errors.New("the name in the certificate is one of another kind of principal: it has an @, or no scheme"))
	}
	return &caller.Principal{ID: certificates + " " + name, Name: name}, nil
}
