package identity

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"mcpx/internal/caller"
)

// certificates begins the ID of a principal that is proved by a client certificate.
const certificates = "certificate"

// ofCertificate makes the principal of a client's verified certificate. Its name is the first URI of the certificate,
// where workloads have their SPIFFE ID, else the first DNS name. The common name is ignored: CAs do not verify it.
// The expiry is checked here because a connection may outlive the certificate.
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
	// The rights tell kinds of principals apart by the form of the name: NAME is a token, SUB@ISSUER a user. A
	// certificate must not take such a name.
	if strings.Contains(name, "@") || !strings.Contains(name, ":") {
		return nil, invalid(errors.New("the name in the certificate has an @ or no scheme, as the names of other principals"))
	}
	return &caller.Principal{ID: certificates + " " + name, Name: name}, nil
}
