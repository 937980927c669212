package caller

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

// ProvedBy reports whether first is the first word of the ID: the URL of an issuer, or the kind of
// a credential.
func (p *Principal) ProvedBy(first string) bool { return strings.HasPrefix(p.ID, first+" ") }

type contextKey struct{}

// proof is what the context of a request says of its sender.
type proof struct {
	principal *Principal
	until     time.Time
}

// With returns a context of a request that p sent, with a credential that expires at until; zero = never.
func With(ctx context.Context, p *Principal, until time.Time) context.Context {
	return context.WithValue(ctx, contextKey{}, &proof{p, until})
}

// From is the principal of the request that ctx belongs to; nil = anybody.
func From(ctx context.Context) *Principal {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.principal
	}
	return nil
}

// Until is when the credential expires that the request of ctx came with; zero = never. A
// request that lasts ends then. Others may finish: they answer what was asked in time.
func Until(ctx context.Context) time.Time {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.until
	}
	return time.Time{}
}
