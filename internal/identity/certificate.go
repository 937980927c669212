package identity

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"
)

// ofCertificate is who a verified certificate of a client says it comes from: its first URI,
// as workloads have it, else its first DNS name. Its common name is no identity: CAs check
// names that hosts have, and not those. A connection may live longer than the certificate.
func ofCertificate(c *x509.Certificate, now time.Time) (*Principal, error) {
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
	// Rights tell principals apart by their names: NAME is that of a token, SUB@ISSUER of a user.
	if strings.Contains(name, "@") || !strings.Contains(name, ":") {
		return nil, invalid(errors.New("the name in the certificate is one of another kind of principal: it has an @, or no scheme"))
	}
	return &Principal{ID: certificates + " " + name, Name: name}, nil
}
