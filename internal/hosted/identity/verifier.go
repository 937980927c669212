// Package identity finds out which principal has sent an HTTP request, by a static token, a token of the authorization server
// inside mcpx, a JWT of another issuer, an agent's token, or a client certificate.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
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

// Options say which credentials are accepted. They are immutable.
type Options struct {
	// Path is the path of the endpoint; empty means /mcp.
	Path string
	// Resource is the public URL of the endpoint. Only on loopback may it be nil, which means the URL in the request.
	Resource *url.URL
	Tokens   []conf.Token
	Issuers  []conf.Issuer
	// Scopes are required scopes: a token of one of the Issuers must have all of them.
	Scopes []string
	// Certificates is true if a verified client certificate is accepted as a credential.
	Certificates bool
	// AuthorizationServers are the issuers that mcpx recommends to clients without a token.
	AuthorizationServers []string
	// Agents is nil if no tokens of agents are accepted.
	Agents *Agents
	// LocalIssuer is the authorization server inside mcpx; nil if there is none.
	LocalIssuer LocalIssuer
	// Logger logs errors about unreachable issuers; nil means no logging.
	Logger *slog.Logger
}

// These errors say why a request has no principal. Their texts are for logs. A client only learns that its token is not valid.
var (
	// ErrNone is returned if the request has no credential.
	ErrNone = caller.ErrNoToken
	// ErrMalformed is returned if the Authorization header cannot be parsed.
	ErrMalformed = caller.ErrMalformed
	// ErrInvalid is returned if the credential is unknown, expired, revoked or for another audience.
	ErrInvalid = errors.New("the credential is not valid")
	// ErrUnavailable is returned if a token cannot be verified because its issuer cannot be reached.
	ErrUnavailable = errors.New("the issuer of the token cannot be reached")
)

// ScopeError is returned for a valid token that lacks scopes.
type ScopeError struct{ Missing []string }

func (e *ScopeError) Error() string {
	return "the token lacks the scopes " + strings.Join(e.Missing, " ") + " (auth.scopes)"
}

// AudienceError is returned for a genuine token that is meant for another audience. Its text says what is in the token, so it may
// be shown only to the sender of the token.
type AudienceError struct{ Has, Wanted []string }

func (e *AudienceError) Error() string {
	has := "no audience"
	if len(e.Has) > 0 {
		has = "the audience " + strings.Join(e.Has, ", ")
	}
	return fmt.Sprintf("the token has %s, and must have %s", has, strings.Join(e.Wanted, " or "))
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *AudienceError) Is(target error) bool { return target == ErrInvalid }

// Verifier finds the principal of a request. The zero value needs no credentials and finds none.
type Verifier struct {
	current func() *State
}

// NewVerifier makes a verifier that calls current for each request. While current returns nil, no credentials are
// needed.
func NewVerifier(current func() *State) *Verifier { return &Verifier{current} }

func (v *Verifier) state() *State {
	if v.current == nil {
		return nil
	}
	return v.current()
}

// State has the credentials that one version of [Options] accepts. Its owner ends it with [State.Revoke].
type State struct {
	options      *Options
	base         string // canonical public URL; empty if there is none
	tokens       map[[sha256.Size]byte]*credential
	issuers      map[string]*issuer          // by URL
	certificates *credential                 // nil if certificates are not accepted
	agents       map[keyOfAgents]*credential // nil if tokens of agents are not accepted
	names        *names

	mu       sync.Mutex
	verified *lru.Map[[sha256.Size]byte, verified] // by the SHA-256 of the token
}

// credential is a static token, or the permission to use certificates or agents' tokens. If the options change, and the new options
// have the same credential, it is kept.
type credential struct {
	token     conf.Token
	principal *caller.Principal // nil for certificates and agents, because each of these has its own principal
	valid     context.Context   // cancelled when the credential is revoked
	revoke    context.CancelFunc
}

func newCredential(t conf.Token, p *caller.Principal) *credential {
	c := &credential{token: t, principal: p}
	c.valid, c.revoke = context.WithCancel(context.Background())
	return c
}

// Options returns the current options, or nil if no credentials are needed.
func (v *Verifier) Options() *Options {
	if s := v.state(); s != nil {
		return s.options
	}
	return nil
}

// NewState makes the state for the options o; nil if o is nil. previous is the state that is replaced, or nil. NewState takes over
// unchanged credentials and issuers from previous, and does not modify previous.
func NewState(o *Options, previous *State) *State {
	if o == nil {
		return nil
	}
	if previous == nil {
		previous = &State{}
	}
	next := &State{
		options: o, tokens: make(map[[sha256.Size]byte]*credential), issuers: make(map[string]*issuer),
		verified: lru.New[[sha256.Size]byte, verified](maxVerified, nil), names: previous.names,
	}
	if next.names == nil {
		next.names = newNames()
	}
	if o.Resource != nil {
		next.base = canonical(o.Resource.String())
	}
	for _, t := range o.Tokens {
		c := previous.tokens[t.SHA256]
		if c == nil || !reflect.DeepEqual(c.token, t) {
			c = newCredential(t, OfToken(t))
		}
		next.tokens[t.SHA256] = c
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	same := previous.options != nil && previous.base == next.base && slices.Equal(previous.options.Scopes, o.Scopes)
	for _, one := range o.Issuers {
		i := previous.issuers[one.URL]
		if i == nil || !same || !reflect.DeepEqual(i.Issuer, one) {
			i = newIssuer(one, log)
		}
		next.issuers[one.URL] = i
	}
	if next.certificates = previous.certificates; !o.Certificates {
		next.certificates = nil
	} else if next.certificates == nil {
		next.certificates = newCredential(conf.Token{}, nil)
	}
	next.agents = newAgents(o, previous)
	return next
}

// OfToken returns the principal of a static token. Tokens with the same name have the same principal.
func OfToken(t conf.Token) *caller.Principal {
	return &caller.Principal{ID: "token " + t.Name, Name: t.Name, Groups: t.Groups, Scopes: t.Scopes}
}

// Revoke ends those credentials and issuers of s that are not in next. It also ends the requests that they have authenticated
// ([Proof.Context]). Both states may be nil.
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
	for by, c := range s.agents {
		if next.agents[by] != c {
			c.revoke()
		}
	}
}

// Proof is what a credential has proved: the principal of a request, and how long the credential is valid.
type Proof struct {
	Principal *caller.Principal
	// Revoked is cancelled when the credential is revoked.
	Revoked context.Context
	// Until is when the credential expires; zero means never.
	Until time.Time
}

// Context returns a context for a request with this proof. When the credential is revoked, the context is cancelled with the cause
// [caller.ErrRevoked], so that open streams end. When the credential expires, the context is not cancelled; streams check
// [caller.Until]. The caller must call end after the request.
func (p *Proof) Context(of context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(caller.Revocable(of, p.Principal, p.Until, p.Revoked))
	stop := context.AfterFunc(p.Revoked, func() { cancel(caller.ErrRevoked) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Knows reports whether a request can still have this principal under the current options. After a reload, other packages call
// Knows to discard what they have of principals that cannot come back.
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
	local := s.options.LocalIssuer
	return s.certificates != nil && p.ProvedBy(certificates) || s.agents != nil && p.ProvedBy(AgentKind) ||
		local != nil && p.ProvedBy(local.LoginIssuer())
}

// Request returns the principal of a request. The error is a *ScopeError, or is or wraps ErrNone, ErrMalformed, ErrInvalid or
// ErrUnavailable. If no credentials are needed, the Proof and the error are nil.
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
		return &Proof{p, s.certificates.valid, certificate.NotAfter}, nil
	case err != nil:
		return nil, err
	}
	digest := sha256.Sum256([]byte(token))
	if c := s.tokens[digest]; c != nil {
		if ends := c.token.Expires; !ends.IsZero() && !time.Now().Before(ends) {
			return nil, invalid(fmt.Errorf("the token %s of %s has expired", c.token.ID(), c.token.Name))
		}
		return &Proof{Principal: c.principal, Revoked: c.valid, Until: c.token.Expires}, nil
	}
	if local := s.options.LocalIssuer; local != nil {
		if proof := local.Prove(token); proof != nil {
			return proof, s.unique(proof.Principal)
		}
	}
	if len(s.issuers) == 0 || strings.Count(token, ".") != 2 {
		return nil, ErrInvalid
	}
	one, err := s.verify(r.Context(), token, digest)
	if err != nil {
		return nil, err
	}
	if !s.accepts(one, r) {
		return nil, &AudienceError{one.audience, s.wanted(one, r)}
	}
	if err := s.unique(one.principal); err != nil {
		return nil, err
	}
	if missing := s.missing(one.principal); len(missing) > 0 {
		return nil, &ScopeError{missing}
	}
	return &Proof{one.principal, one.issuer.ctx, one.expires}, nil
}

// Forwarded returns the proof for a request that another replica has forwarded, with the principal who. The other replica has
// verified the credential, which is valid until the time until; this replica finds out when it is revoked. Forwarded returns nil if
// it finds no such credential here. It does not verify a JWT again, because it might have to wait for the keys of the issuer.
func (v *Verifier) Forwarded(r *http.Request, who *caller.Principal, until time.Time) *Proof {
	s := v.state()
	if s == nil || who == nil {
		return nil
	}
	if token, err := caller.Bearer(r.Header); err == nil && strings.Count(token, ".") == 2 {
		for at, i := range s.issuers {
			if who.ProvedBy(at) {
				return &Proof{Principal: who, Revoked: i.ctx, Until: until}
			}
		}
	}
	proof, err := v.Request(r)
	if err != nil || proof == nil || proof.Principal.ID != who.ID {
		return nil
	}
	return proof
}

// missing returns the scopes of Options.Scopes that a principal lacks. If the principal has a scope that ends in *, it has all
// scopes that begin with the part before the *.
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

// LocalIssuer is the authorization server inside mcpx (auth.front in the config). It verifies its own tokens without a network
// request.
type LocalIssuer interface {
	// Prove verifies an access token. It returns nil if the token is not valid or comes from another issuer. A valid
	// token is accepted on all paths of mcpx, and has all required scopes.
	Prove(token string) *Proof
	// LoginIssuer returns the URL of the OpenID issuer where users log in.
	LoginIssuer() string
}

// tokenPrefix lets secret scanners find a token that was committed to a repository.
const tokenPrefix = "mcpx_"

// tokenDigits is how many base 62 digits 160 bits need.
const tokenDigits = 27

// NewToken makes a token of 160 random bits. These are enough that the token cannot be guessed from its SHA-256 hash
// in the config, although the hash has no salt.
func NewToken() string {
	bits := make([]byte, 20)
	_, _ = rand.Read(bits) // never fails
	digits := new(big.Int).SetBytes(bits).Text(62)
	return tokenPrefix + strings.Repeat("0", tokenDigits-len(digits)) + digits
}
