// Package identity says who a request comes from.
package identity

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Principal is the proved sender of a request. Nobody writes to it. A nil *Principal is anybody:
// the sender of a request to an endpoint without auth, or the client over stdio.
type Principal struct {
	// ID is the same in every request of the principal, and no other principal has it. It begins
	// with the kind of the credential, or with the issuer, so that no issuer can make up the ID
	// of a token or of a user of another issuer. Sessions, handles and limits belong to an ID.
	ID string
	// Name is for people: in logs and on the status page.
	Name string
	// Groups and Scopes are what its token or its issuer says of it; rights may depend on them.
	Groups, Scopes []string
	// Claims are those of its JWT or, with auth.front, of its login, a JSON object; nil where
	// it had none.
	Claims json.RawMessage
}

// Key is the ID; empty for a nil principal.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.ID
}

// certificates is the first word of the ID of a principal that a certificate proves, as the
// URL of an issuer is of its own.
const certificates = "certificate"

// of reports whether that is the first word of the ID.
func (p *Principal) of(first string) bool { return strings.HasPrefix(p.ID, first+" ") }

type contextKey struct{}

// From is the principal of the request that ctx belongs to; nil = anybody.
func From(ctx context.Context) *Principal {
	if proof, ok := ctx.Value(contextKey{}).(*Proof); ok {
		return proof.Principal
	}
	return nil
}

// Until is when the credential expires that the request of ctx came with; zero = never. A
// request that lasts ends then. Others may finish: they answer what was asked in time.
func Until(ctx context.Context) time.Time {
	if proof, ok := ctx.Value(contextKey{}).(*Proof); ok {
		return proof.Until
	}
	return time.Time{}
}
