package identity

import (
	"context"
	"log/slog"

	"mcpx/internal/base/conf"

	"github.com/golang-jwt/jwt/v5"
)

// Keys are the public keys of one issuer. They are downloaded when they are first needed, and then regularly. A token with an
// unknown key causes one more download, at a bounded rate.
type Keys struct{ issuer *issuer }

// NewKeys returns the keys of an issuer. The caller must close them.
func NewKeys(issuer conf.Issuer, log *slog.Logger) *Keys { return &Keys{newIssuer(issuer, log)} }

// Close ends all downloads.
func (k *Keys) Close() {
	k.issuer.revoke()
	k.issuer.web.CloseIdleConnections()
}

// Parse checks a JWT and decodes its claims into the parameter into. It checks the signature, the issuer and the times of the
// token, and what options say. The error wraps [ErrUnavailable] if the issuer cannot be reached.
func (k *Keys) Parse(ctx context.Context, token string, into jwt.Claims, options ...jwt.ParserOption) (*jwt.Token, error) {
	options = append(options, jwt.WithValidMethods(algorithms), jwt.WithIssuer(k.issuer.URL), jwt.WithLeeway(leeway),
		jwt.WithStrictDecoding())
	return jwt.ParseWithClaims(token, into, func(t *jwt.Token) (any, error) { return k.issuer.key(ctx, t) }, options...)
}
