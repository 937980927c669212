package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"mcpx/internal/hosted/identity"
)

// MostLogins is the most logins that are kept. mostOfOne is the most of one user: a further one ends the one that was not
// renewed for longest, so that nobody can push out the logins of others.
const (
	MostLogins = 10_000
	mostOfOne  = 100
)

// grant is one login: of one user, by one client. It is sealed in the store. The client has its number in its tokens, which are
// sealed too, and nothing of the issuer.
type grant struct {
	Number string `json:"g"`
	Client string `json:"c"` // digest of the client_id; empty for the pages of mcpx, which have no tokens
	Called string `json:"n"` // what the client calls itself
	Who    user   `json:"w"`
	// Next is the lowest number that a refresh token may have; 0 means that the code has not been used.
	Next    int   `json:"x"`
	Began   int64 `json:"b"` // Unix seconds, like all times here
	Renewed int64 `json:"r"` // when the issuer was asked last
	// Done is when the last refresh token was used, in Unix milliseconds, by the clock of the process that did it.
	Done  int64 `json:"d,omitempty"`
	Until int64 `json:"u"` // when the login ends if it is not renewed
	// Ended says why the login has ended; empty while it goes on.
	Ended  string `json:"e,omitempty"`
	Issued issued `json:"i"`
	// Renewing is who renews the login now, at most until RenewingUntil. Nobody else may use the issuer's refresh token then,
	// since an issuer may end everything if that comes twice.
	Renewing      string `json:"l,omitempty"`
	RenewingUntil int64  `json:"lu,omitempty"`
	// Quiet means that this renewal is not for a client, whose refresh token stays valid.
	Quiet bool `json:"q,omitempty"`
}

// issued is what the issuer gave for a login.
type issued struct {
	Refresh string `json:"r,omitempty"`
	// Access is the issuer's access token, only if there is no refresh token. AccessUntil is its end.
	Access      string `json:"a,omitempty"`
	AccessUntil int64  `json:"au,omitempty"`
	// Session is the claim sid.
	Session string `json:"s,omitempty"`
	// Info means that the userinfo endpoint has answered.
	Info bool `json:"i,omitempty"`
	// Given is the newest access token, for [Server.IssuerToken], and GivenUntil its end.
	Given      string `json:"t,omitempty"`
	GivenUntil int64  `json:"tu,omitempty"`
}

// give sets the newest access token.
func (i *issued) give(token *oauth2.Token) {
	i.Given, i.GivenUntil = token.AccessToken, deadline(time.Minute)
	if !token.Expiry.IsZero() {
		i.GivenUntil = token.Expiry.Unix()
	}
}

// end ends the login. What is kept of it only says so, for as long as an access token can be valid.
func (g *grant) end(why string) {
	g.Ended, g.Issued, g.Renewing = why, issued{}, ""
	g.Until = deadline(accessTime + time.Minute)
}

// id is the name of the login that administrators see. With it nothing can be done but to end the login.
func (g *grant) id() string {
	sum := sha256.Sum256([]byte("id " + g.Number))
	return hex.EncodeToString(sum[:5])
}

// storePrefix begins the keys of logins in the store.
const storePrefix = "front."

// keyOf returns the key of a login in the store. It is in lower case, as it becomes the name of a file.
func keyOf(number string) string {
	sum := sha256.Sum256([]byte(number))
	return storePrefix + hex.EncodeToString(sum[:16])
}

// expiredKept is how long a login is kept that was not renewed in time, so that some process notices that it has ended.
const expiredKept = 7 * 24 * time.Hour

// kept is until when the store keeps the login.
func (g *grant) kept() time.Time {
	if g.Ended != "" || g.Next == 0 {
		return time.Unix(g.Until, 0).Add(time.Minute)
	}
	return time.Unix(g.Until, 0).Add(expiredKept)
}

var (
	errUnknown = errors.New("no such login")
	errNothing = errors.New("nothing to change")
)

// change changes a login in the store. If change returns an error, nothing changes, and that is the error. Other errors are
// errUnknown and errUnavailable. The grant is the newest in either case.
//
// A login that this process does not know may be known to others. For that, the store has to be asked with a change: if there is
// no such login, a mark remains for a while that says so.
func (s *Server) change(ctx context.Context, number string, change func(*grant) error) (*grant, error) {
	var last grant
	var changed error
	unknown := false
	err := s.store.Change(ctx, keyOf(number), func(old []byte) ([]byte, time.Time, error) {
		last, unknown = grant{}, false
		if old == nil || s.seals.grant.open(string(old), &last) != nil || last.Number != number {
			last, unknown = grant{Number: number}, true
			last.end("unknown")
		} else if changed = change(&last); changed != nil {
			return nil, time.Time{}, changed
		}
		return []byte(s.seals.grant.close(last)), last.kept(), nil
	})
	switch {
	case changed != nil && errors.Is(err, changed):
		return &last, changed
	case err != nil:
		return nil, errUnavailable
	case unknown:
		return nil, errUnknown
	}
	return &last, nil
}

// begin keeps a new login.
func (s *Server) begin(ctx context.Context, g *grant) error {
	s.makeRoom(ctx, &g.Who)
	err := s.store.Change(ctx, keyOf(g.Number), func([]byte) ([]byte, time.Time, error) {
		return []byte(s.seals.grant.close(g)), g.kept(), nil
	})
	if err != nil {
		return errUnavailable
	}
	return nil
}

// makeRoom ends a login of a user who has too many.
func (s *Server) makeRoom(ctx context.Context, who *user) {
	oldest, n := (*grant)(nil), 0
	for _, g := range s.standing() {
		if g.Who.Subject == who.Subject {
			if n++; oldest == nil || g.Renewed < oldest.Renewed {
				oldest = g
			}
		}
	}
	if n >= mostOfOne {
		_, _ = s.end(ctx, oldest.Number, "the user has too many logins")
	}
}

// end ends a login, and says whether it did: false if the login has ended before or is unknown.
func (s *Server) end(ctx context.Context, number, why string) (ended bool, err error) {
	g, err := s.change(ctx, number, func(g *grant) error {
		if g.Ended != "" {
			return errNothing
		}
		g.end(why)
		return nil
	})
	switch {
	case errors.Is(err, errNothing), errors.Is(err, errUnknown):
		return false, nil
	case err != nil:
		return false, err
	}
	s.ended(g)
	return true, nil
}

// ended tells that a login has ended. Whoever has changed the login so calls it, once.
func (s *Server) ended(g *grant) {
	if g.Next == 0 {
		return // it has never begun
	}
	p := s.principal(&g.Who)
	s.o.Log.Info("a login has ended", "principal", p.Name, "login", g.id(), "client", g.Called, "reason", g.Ended)
	s.tell(Event{Ended: true, Login: g.id(), Principal: p, Client: g.Called, Why: g.Ended})
}

func (s *Server) tell(e Event) {
	if s.parts.Happened != nil {
		s.parts.Happened(e)
	}
}

// known has the logins of this server, as the store has told them. It is safe for concurrent use.
type known struct {
	mu       sync.RWMutex
	byNumber map[string]*entry
	all      bool // that the store has told all that it had at the beginning
}

// entry is what is known of a login. The grant is never written to.
type entry struct {
	*grant
	// stands ends when the login ends.
	stands context.Context
	end    context.CancelFunc
	// changed is closed when there is a newer entry.
	changed chan struct{}
}

// learn takes a value of the store.
func (s *Server) learn(value []byte) {
	g := new(grant)
	if s.seals.grant.open(string(value), g) != nil {
		return // of another resource, or sealed with an old key
	}
	k := &s.known
	k.mu.Lock()
	defer k.mu.Unlock()
	e := &entry{grant: g, changed: make(chan struct{})}
	if before := k.byNumber[g.Number]; before != nil {
		e.stands, e.end = before.stands, before.end
		close(before.changed)
	} else {
		e.stands, e.end = context.WithCancel(s.ctx)
	}
	if g.Ended != "" {
		e.end()
	}
	k.byNumber[g.Number] = e
	if k.all {
		s.left(g)
	}
}

// learnedAll is called once, when s has learned the logins that the store had at the beginning.
func (s *Server) learnedAll() {
	k := &s.known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = true
	stay := make(map[string]bool)
	for _, e := range k.byNumber {
		stay[e.Who.Subject] = stay[e.Who.Subject] || e.goesOn()
	}
	for _, e := range k.byNumber {
		if !stay[e.Who.Subject] {
			s.left(e.grant)
		}
	}
}

// left tells that a login was the last one of its principal with a client, if it has ended. One of the page says nothing about who calls:
// they may have tokens of the issuer. The caller holds known.mu.
func (s *Server) left(g *grant) {
	if g.Ended == "" || g.Client == "" || g.Next == 0 || s.parts.Left == nil {
		return
	}
	for _, e := range s.known.byNumber {
		if e.Who.Subject == g.Who.Subject && e.goesOn() {
			return
		}
	}
	s.parts.Left(s.principal(&g.Who))
}

// goesOn reports whether a client is logged in with it. A login whose code was not used does not count: it may never begin. One of the
// page does not either: nobody asks the issuer about it as long as nobody looks at the page.
func (g *grant) goesOn() bool {
	return g.Ended == "" && g.Client != "" && g.Next > 0 && !expired(g.Until)
}

// find returns what is known of a login, or nil.
func (s *Server) find(number string) *entry {
	s.known.mu.RLock()
	defer s.known.mu.RUnlock()
	return s.known.byNumber[number]
}

// standing returns the logins that go on.
func (s *Server) standing() (all []*grant) {
	s.known.mu.RLock()
	defer s.known.mu.RUnlock()
	for _, e := range s.known.byNumber {
		if e.Ended == "" && !expired(e.Until) {
			all = append(all, e.grant)
		}
	}
	return all
}

// sweepEvery is the time between two looks for logins that nobody has renewed.
const sweepEvery = time.Hour

// sweep ends logins that are over, and forgets those that have ended, at most once an hour.
func (s *Server) sweep(ctx context.Context) {
	now := time.Now()
	last := s.swept.Load()
	if now.Unix()-last < int64(sweepEvery/time.Second) || !s.swept.CompareAndSwap(last, now.Unix()) {
		return
	}
	var over []string
	s.known.mu.Lock()
	for number, e := range s.known.byNumber {
		switch {
		case !expired(e.Until):
		case e.Ended == "" && e.Next > 0:
			over = append(over, number)
		default:
			e.end()
			delete(s.known.byNumber, number)
		}
	}
	s.known.mu.Unlock()
	for _, number := range over {
		_, _ = s.end(ctx, number, "it was not renewed in time")
	}
}

// stands returns a context that ends with a login; nil if the login has ended. A login that this process does not know may have
// begun at another one a moment ago: its access tokens are good until they expire.
func (s *Server) stands(number string) context.Context {
	e := s.find(number)
	switch {
	case e == nil:
		return s.ctx
	case e.Ended != "":
		return nil
	}
	return e.stands
}

// Standing returns who a login of mcpx's own pages ([Parts.SignedIn]) is from. It asks the issuer again when the login was not
// renewed for as long as an access token is valid. The errors are [identity.ErrInvalid] and [identity.ErrUnavailable].
func (s *Server) Standing(ctx context.Context, number string) (*identity.Proof, error) {
	e := s.find(number)
	if e == nil || e.Ended == "" && e.Renewed+int64(accessTime/time.Second) <= time.Now().Unix() {
		if _, err := s.renewed(ctx, number, ofPage); err != nil {
			if errors.Is(err, errUnavailable) || errors.Is(err, errAway) {
				return nil, identity.ErrUnavailable
			}
			return nil, identity.ErrInvalid
		}
		e = s.find(number)
	}
	if e == nil || e.Ended != "" || e.Client != "" || expired(e.Until) || !s.o.admits(&e.Who) {
		return nil, identity.ErrInvalid
	}
	until := time.Unix(e.Renewed, 0).Add(accessTime)
	return &identity.Proof{Principal: s.principal(&e.Who), Revoked: e.stands, Until: until}, nil
}

// ofPage lets a login of mcpx's own pages be renewed, unless another request has just done that.
func ofPage(g *grant) error {
	switch {
	case g.Ended != "" || g.Client != "" || expired(g.Until):
		return errEnded
	case g.Renewed+int64(accessTime/time.Second) > time.Now().Unix():
		return errNothing
	}
	return nil
}
