package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
)

// Options say who may connect. They are never written to.
type Options struct {
	// Resource is the public URL of /mcp; nil: on loopback the address that a request has.
	Resource *url.URL
	Tokens   []Token
}

// Token is a token that mcpx itself has given out.
type Token struct {
	Name           string
	SHA256         [sha256.Size]byte
	Groups, Scopes []string
}

// The reasons why a request has no principal. Their texts are for logs: clients hear no
// more of a token than that it does not count.
var (
	// ErrNone: the request brings nothing that could prove who it comes from.
	ErrNone = errors.New("no token")
	// ErrMalformed: its header cannot be read.
	ErrMalformed = errors.New("the Authorization header is malformed")
	// ErrInvalid: it brings something that proves nothing.
	ErrInvalid = errors.New("the token does not count")
)

// ErrRevoked is why a request ends whose credential a reload of the config took away.
var ErrRevoked = errors.New("the credential does not count any more")

// Verifier proves who requests come from. The zero value asks nobody.
type Verifier struct {
	mu    sync.Mutex // held to change
	state atomic.Pointer[state]
}

// state is what one version of the options accepts.
type state struct {
	options *Options
	tokens  map[[sha256.Size]byte]*credential
}

// credential is one way to prove who one is, from the options that have it to those that
// do not.
type credential struct {
	token     Token
	principal *Principal
	stands    context.Context // until it is revoked
	revoke    context.CancelFunc
}

// Options are those in force; nil = nobody is asked.
func (v *Verifier) Options() *Options {
	if s := v.state.Load(); s != nil {
		return s.options
	}
	return nil
}

// SetOptions changes who may connect; nil: nobody is asked any more. What both the
// old and the new options have goes on; requests with anything else end.
func (v *Verifier) SetOptions(o *Options) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.state.Load()
	if before == nil {
		before = &state{}
	}
	var next *state
	if o != nil {
		next = &state{options: o, tokens: make(map[[sha256.Size]byte]*credential)}
		for _, t := range o.Tokens {
			c := before.tokens[t.SHA256]
			if c == nil || !c.same(t) {
				c = newCredential(t)
			}
			next.tokens[t.SHA256] = c
		}
	}
	v.state.Store(next)
	for digest, c := range before.tokens {
		if next == nil || next.tokens[digest] != c {
			c.revoke()
		}
	}
}

func newCredential(t Token) *credential {
	c := &credential{token: t, principal: &Principal{ID: "token " + t.Name, Name: t.Name, Groups: t.Groups, Scopes: t.Scopes}}
	c.stands, c.revoke = context.WithCancel(context.Background())
	return c
}

func (c *credential) same(t Token) bool {
	return c.token.Name == t.Name && slices.Equal(c.token.Groups, t.Groups) && slices.Equal(c.token.Scopes, t.Scopes)
}

// Proof is who a request comes from, and until when that stands.
type Proof struct {
	Principal *Principal
	// Revoked is done when the credential does not count any more.
	Revoked context.Context
}

// Request proves who a request comes from. The error is ErrNone, ErrMalformed or one that
// wraps ErrInvalid. A nil Proof without an error is anybody: nobody is asked.
func (v *Verifier) Request(r *http.Request) (*Proof, error) {
	s := v.state.Load()
	if s == nil {
		return nil, nil
	}
	token, err := bearer(r.Header)
	if err != nil {
		return nil, err
	}
	c := s.tokens[sha256.Sum256([]byte(token))]
	if c == nil {
		return nil, ErrInvalid
	}
	return &Proof{c.principal, c.stands}, nil
}
