package identity

import "strings"

// Front is an authorization server of mcpx itself: its tokens are proved without asking
// anybody.
type Front interface {
	// Prove says who one of its tokens stands for; nil if the token does not count, or is of
	// somebody else. The token is for mcpx as a whole, and has all scopes that are needed.
	Prove(token string) *Proof
	// Asks is the issuer that knows its principals.
	Asks() string
}

// OfIssuer is the principal that an issuer knows by that subject, without its claims. The
// issuer is part of the name, so that no subject has the name of a token or of another
// issuer's.
func OfIssuer(url, subject string) *Principal {
	_, short, _ := strings.Cut(url, "://")
	return &Principal{ID: url + " " + subject, Name: subject + "@" + strings.TrimSuffix(short, "/")}
}
