package identity

import (
	"strings"

	"mcpx/internal/caller"
)

// LocalIssuer is the authorization server that is part of mcpx. It verifies its tokens without asking
// another server.
type LocalIssuer interface {
	// Prove verifies an access token; nil if it does not count, or was not made by this server.
	// The token is for mcpx as a whole, and has every scope that is needed.
	Prove(token string) *Proof
	// Asks is the URL of the issuer at which its principals log in.
	Asks() string
}

// OfIssuer makes the principal for a subject (the claim sub) of an issuer, without its claims.
// The issuer is part of the name, so that no subject has the name of a token, or of a subject of
// another issuer.
func OfIssuer(url, subject string) *caller.Principal {
	_, short, _ := strings.Cut(url, "://")
	return &caller.Principal{ID: url + " " + subject, Name: subject + "@" + strings.TrimSuffix(short, "/")}
}
