package identity

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// certificates is the first word of the ID of a principal that a client certificate has proved.
const certificates = "certificate"

// ofCertificate returns the principal of a verified client certificate. The name of the principal is the first URI of the
// certificate, where workloads have their SPIFFE ID, or else its first DNS name. The common name is ignored, because CAs do not
// verify it. The expiry is checked here, because a connection may stay open for longer than the certificate is valid.
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
	// Rights tell kinds of principals apart by the form of the name: NAME is a token, SUB@ISSUER a user, agent:ID an agent. So
	// certificates must not give names of these forms.
	if strings.Contains(name, "@") || !strings.Contains(name, ":") || strings.HasPrefix(name, conf.Agents) {
		return nil, invalid(errors.New("the name in the certificate has an @, no scheme or the scheme agent, as the names of other principals"))
	}
	return &caller.Principal{ID: certificates + " " + name, Name: name}, nil
}
