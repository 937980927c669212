// Package identity proves who a request over HTTP comes from.
package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/caller"
)

// Options say who may connect. They are never written to.
type Options struct {
	// Resource is the public URL of /mcp; nil: on loopback the address that a client asks for.
	Resource *url.URL
	Tokens   []Token
	Issuers  []Issuer
	// Scopes are what the tokens of issuers need.
	Scopes []string
	// Certificates: a verified certificate of a client proves who it is.
	Certificates bool
	// AuthorizationServers are the issuers that mcpx names to clients without a token.
	AuthorizationServers []string
	// Front is the authorization server of mcpx itself; nil = there is none.
	Front LocalIssuer
	// Logger gets errors of issuers that cannot be reached; nil = discard.
	Logger *slog.Logger
}

// Token is a token that mcpx itself has given out.
type Token = conf.Token

// The reasons why a request has no principal. Their texts are for logs: a client learns only
// that its token does not count.
var (
	// ErrNone: the request has no credential.
	ErrNone = caller.ErrNoToken
	// ErrMalformed: the Authorization header cannot be read.
	ErrMalformed = caller.ErrMalformed
	// ErrInvalid: the credential does not count.
	ErrInvalid = errors.New("the credential does not count")
	// ErrUnavailable: the token cannot be verified, as its issuer cannot be reached.
	ErrUnavailable = errors.New("the issuer of the token cannot be reached")
)

// ScopeError is a principal whose token lacks scopes.
type ScopeError struct {
	Principal *caller.Principal
	Missing   []string
}

func (e *ScopeError) Error() string { return "the token lacks scopes" }

// ErrRevoked is why a request ends whose credential a reload of the config took away.
var ErrRevoked = errors.New("the credential does not count any more")

// Verifier proves which principal a request comes from. With the zero value every request comes
// from anybody.
type Verifier struct {
	current func() *State
}

// NewVerifier makes a verifier by the state that current returns, which is called for each
// request. While it is nil, every request comes from anybody.
func NewVerifier(current func() *State) *Verifier { return &Verifier{current} }

func (v *Verifier) state() *State {
	if v.current == nil {
		return nil
	}
	return v.current()
}

// State is what one version of the options accepts. Its owner ends it with [State.Revoke].
type State struct {
	options      *Options
	base         string // the public URL in its canonical form; empty: none
	tokens       map[[sha256.Size]byte]*credential
	issuers      map[string]*issuer // by URL
	certificates *credential        // nil: they do not count

	mu       sync.Mutex
	verified *lru.Map[[sha256.Size]byte, verified] // by the digests of the tokens
}

// credential is a token of the options, or that certificates count. It lasts from the options
// that have it to the first that do not.
type credential struct {
	token     Token
	principal *caller.Principal // nil for certificates: each has its own
	stands    context.Context   // until it is revoked
	revoke    context.CancelFunc
}

func newCredential(t Token, p *caller.Principal) *credential {
	c := &credential{token: t, principal: p}
	c.stands, c.revoke = context.WithCancel(context.Background())
	return c
}

// Options are those in force; nil = no credential is needed.
func (v *Verifier) Options() *Options {
	if s := v.state(); s != nil {
		return s.options
	}
	return nil
}

// NewState makes the state for options, which is nil for nil: no credential is needed. It takes
// over the credentials that before, which may be nil, has too, and an issuer with the same needs
// of its tokens. Nothing of before changes.
func NewState(o *Options, before *State) *State {
	if o == nil {
		return nil
	}
	if before == nil {
		before = &State{}
	}
	next := &State{
		options: o, tokens: make(map[[sha256.Size]byte]*credential), issuers: make(map[string]*issuer),
		verified: lru.New[[sha256.Size]byte, verified](mostVerified, nil),
	}
	if o.Resource != nil {
		next.base = canonical(o.Resource.String())
	}
	for _, t := range o.Tokens {
		c := before.tokens[t.SHA256]
		if c == nil || !reflect.DeepEqual(c.token, t) {
			c = newCredential(t, &caller.Principal{ID: "token " + t.Name, Name: t.Name, Groups: t.Groups, Scopes: t.Scopes})
		}
		next.tokens[t.SHA256] = c
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	same := before.options != nil && before.base == next.base && slices.Equal(before.options.Scopes, o.Scopes)
	for _, one := range o.Issuers {
		i := before.issuers[one.URL]
		if i == nil || !same || !reflect.DeepEqual(i.Issuer, one) {
			i = newIssuer(one, log)
		}
		next.issuers[one.URL] = i
	}
	if next.certificates = before.certificates; !o.Certificates {
		next.certificates = nil
	} else if next.certificates == nil {
		next.certificates = newCredential(Token{}, nil)
	}
	return next
}

// Revoke ends the credentials and issuers that the next state does not have, and with them the
// requests that they proved ([Proof.Context]). Both states may be nil.
func (s *State) Revoke(next *State) {
	if s == nil {
		return
	}
	if next == nil {
		next = &State{}
	}
	for digest, c := range s.tokens {
		if next.tokens[digest] != c {
			c.revoke()
		}
	}
	for at, i := range s.issuers {
		if next.issuers[at] != i {
			i.revoke()
		}
	}
	if s.certificates != nil && s.certificates != next.certificates {
		s.certificates.revoke()
	}
}

// Proof is the principal of a request, and how long that holds.
type Proof struct {
	Principal *caller.Principal
	// Revoked is done when the credential is taken away.
	Revoked context.Context
	// Until is when the credential expires; zero = never.
	Until time.Time
}

// Context returns a context for a request with this proof. It ends, with [ErrRevoked] as the
// cause, when the credential is taken away: an open stream would go on otherwise. It does not
// end when the credential expires: a stream does, by [Until]. The caller calls end when the
// request has ended.
func (p *Proof) Context(of context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(caller.With(of, p.Principal, p.Until))
	stop := context.AfterFunc(p.Revoked, func() { cancel(ErrRevoked) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Knows reports whether the options in force can prove that a request comes from that
// principal.
func (v *Verifier) Knows(p *caller.Principal) bool {
	s := v.state()
	if p == nil || s == nil {
		return p == nil && s == nil
	}
	for _, c := range s.tokens {
		if c.principal.ID == p.ID {
			return true
		}
	}
	for at := range s.issuers {
		if p.ProvedBy(at) {
			return true
		}
	}
	return s.certificates != nil && p.ProvedBy(certificates) || s.options.Front != nil && p.ProvedBy(s.options.Front.Asks())
}

// Request proves which principal a request comes from. The error is a *ScopeError, or one of
// those above, perhaps wrapped. A nil Proof without an error: no credential is needed.
func (v *Verifier) Request(r *http.Request) (*Proof, error) {
	s := v.state()
	if s == nil {
		return nil, nil
	}
	token, err := caller.Bearer(r.Header)
	switch {
	case errors.Is(err, ErrNone) && s.certificates != nil && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		certificate := r.TLS.VerifiedChains[0][0]
		p, err := ofCertificate(certificate, time.Now())
		if err != nil {
			return nil, err
		}
		return &Proof{p, s.certificates.stands, certificate.NotAfter}, nil
	case err != nil:
		return nil, err
	}
	digest := sha256.Sum256([]byte(token))
	if c := s.tokens[digest]; c != nil {
		return &Proof{Principal: c.principal, Revoked: c.stands}, nil
	}
	if front := s.options.Front; front != nil {
		if proof := front.Prove(token); proof != nil {
			return proof, nil
		}
	}
	if len(s.issuers) == 0 || strings.Count(token, ".") != 2 {
		return nil, ErrInvalid
	}
	one, err := s.verify(token, digest)
	if err != nil {
		return nil, err
	}
	if !s.accepts(one, r) {
		return nil, invalid(errors.New("the token is for another audience"))
	}
	if missing := s.missing(one.principal); len(missing) > 0 {
		return nil, &ScopeError{one.principal, missing}
	}
	return &Proof{one.principal, one.issuer.stands, one.expires}, nil
}

// missing returns the scopes that a principal lacks. A scope of it that ends in * stands for all
// that begin like it.
func (s *State) missing(p *caller.Principal) (missing []string) {
	for _, wanted := range s.options.Scopes {
		if !slices.ContainsFunc(p.Scopes, func(has string) bool {
			broad, isBroad := strings.CutSuffix(has, "*")
			return has == wanted || isBroad && strings.HasPrefix(wanted, broad)
		}) {
			missing = append(missing, wanted)
		}
	}
	return missing
}
