package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"mcpx/internal/caller"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/identity"
)

// MaxLogins is the maximum number of logins in the state folder of a process (the store of a cluster has other limits). maxPerUser
// is the maximum number of logins of one user. If a user has maxPerUser logins, a new login ends the user's login that was renewed
// least recently. So no user can push out the logins of others.
const (
	MaxLogins  = 10_000
	maxPerUser = 100
)

// grant is one login of one user, by one client or for mcpx's own pages. The store has it encrypted. The client's tokens are also
// encrypted. They contain the number of the login, but none of the issuer's tokens.
type grant struct {
	Number string `json:"g"`
	Client string `json:"c"` // digest of the client_id; empty for the pages of mcpx, which have no tokens
	Called string `json:"n"` // the client's own name for itself; a fixed text for the pages of mcpx
	Who    user   `json:"w"`
	// Next is the number of the refresh token that is valid now. Refresh tokens with lower numbers are used up. As long as the
	// client has not used its code, Next is 0.
	Next    int   `json:"x"`
	Began   int64 `json:"b"` // Unix seconds, like all times here except Done
	Renewed int64 `json:"r"` // when the issuer last confirmed that the user may stay logged in
	// Done is when the last refresh token was used, in Unix milliseconds, by the clock of the process that did it.
	Done int64 `json:"d,omitempty"`
	// Until is when the login ends if it is not renewed. After the login has ended, Until says how long its record is kept.
	Until int64 `json:"u"`
	// Ended says why the login has ended. It is empty as long as the login is valid.
	Ended  string `json:"e,omitempty"`
	Issued issued `json:"i"`
	// Renewing identifies the request that is now renewing the login. The request has time until RenewingUntil. Meanwhile no other
	// request may use the issuer's refresh token, because an issuer may end the login if it gets the same token twice.
	Renewing      string `json:"l,omitempty"`
	RenewingUntil int64  `json:"lu,omitempty"`
	// Quiet means that the present renewal is not for a client, but for a new access token of the issuer ([Server.IssuerToken]).
	// The client's refresh token then stays valid, and Next stays the same.
	Quiet bool `json:"q,omitempty"`
}

// issued is what the issuer gave for a login.
type issued struct {
	Refresh string `json:"r,omitempty"`
	// Access is the issuer's access token, if there is no refresh token and the userinfo endpoint accepts the access token.
	Access string `json:"a,omitempty"`
	// If there is no refresh token, AccessUntil is when the login ends, in Unix seconds (see withoutRefresh). Otherwise it is not
	// used.
	AccessUntil int64 `json:"au,omitempty"`
	// Session is the claim sid: the issuer's ID for the user's session, which a logout token may name.
	Session string `json:"s,omitempty"`
	// Info means that the userinfo endpoint answered at the login, so renewals ask it too.
	Info bool `json:"i,omitempty"`
	// Given is the issuer's newest access token, which [Server.IssuerToken] returns. GivenUntil is its end.
	Given      string `json:"t,omitempty"`
	GivenUntil int64  `json:"tu,omitempty"`
}

// give sets Given to the issuer's access token, and GivenUntil to the end of that token. If the issuer does not say when the token
// ends, GivenUntil is a minute from now.
func (i *issued) give(token *oauth2.Token) {
	i.Given, i.GivenUntil = token.AccessToken, deadline(time.Minute)
	if !token.Expiry.IsZero() {
		i.GivenUntil = token.Expiry.Unix()
	}
}

// end ends the login. It drops the issuer's tokens. The rest of the record is kept until every access token of the login has
// expired.
func (g *grant) end(why string) {
	g.Ended, g.Issued, g.Renewing = why, issued{}, ""
	g.Until = deadline(accessTime + time.Minute)
}

// id identifies the login to administrators. It is no secret: nobody can use it as a token.
func (g *grant) id() string {
	sum := sha256.Sum256([]byte("id " + g.Number))
	return hex.EncodeToString(sum[:5])
}

// storePrefix begins the keys of logins in the store.
const storePrefix = "front."

// keyOf returns the key of a login in the store. The key is in lower case because it may become the name of a file.
func keyOf(number string) string {
	sum := sha256.Sum256([]byte(number))
	return storePrefix + hex.EncodeToString(sum[:16])
}

// expiredKept is how long a login that was not renewed in time is kept, so that a process can notice and report its end.
const expiredKept = 7 * 24 * time.Hour

// kept returns until when the store must keep the record of the login.
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

// change changes a login in the store. It calls update with the login, stores what update made of it, and returns the changed
// login. If update returns an error, nothing is stored, and change returns that error together with the login. The other errors of
// change are errUnknown and errUnavailable.
//
// This process may not know the login yet, because another process has just begun it. So change always asks the store. The only way
// to ask the store is to change an entry. Therefore, if the store has no such login, change stores a record of an ended login,
// which the store keeps for a while, and returns errUnknown.
func (s *Server) change(ctx context.Context, number string, update func(*grant) error) (*grant, error) {
	var last grant
	var changed error
	unknown := false
	err := s.store.Change(ctx, keyOf(number), func(old []byte) ([]byte, time.Time, error) {
		last, unknown = grant{}, false
		if old == nil || s.seals.grant.open(string(old), &last) != nil || last.Number != number {
			last, unknown = grant{Number: number}, true
			last.end("unknown")
		} else if changed = update(&last); changed != nil {
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

// begin stores a new login. Before that, it ends an old login of the user if the user has too many.
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

// If the user has maxPerUser logins, makeRoom ends the one that was renewed least recently. Errors are ignored: the user then has
// one login too many.
func (s *Server) makeRoom(ctx context.Context, who *user) {
	oldest, n := (*grant)(nil), 0
	for _, g := range s.validGrants() {
		if g.Who.Subject == who.Subject {
			if n++; oldest == nil || g.Renewed < oldest.Renewed {
				oldest = g
			}
		}
	}
	if n >= maxPerUser {
		_, _ = s.end(ctx, oldest.Number, "the user has too many logins")
	}
}

// end ends a login. The result ended is false if the login had ended before or is unknown.
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

// ended logs and reports that a login has ended, unless its code was never used. It is called once, by the process that ended
// the login in the store.
func (s *Server) ended(g *grant) {
	if g.Next == 0 {
		return // the login has never begun: its code was not used
	}
	p := s.principal(&g.Who)
	s.o.Log.Info("a login has ended", "principal", p.Name, "login", g.id(), "client", g.Called, "reason", g.Ended)
	s.record(audit.LoginEnded, g, p)
}

// record records that a login has begun or ended.
func (s *Server) record(event string, g *grant, p *caller.Principal) {
	s.o.Audit.Login(audit.Login{
		Event: event, Principal: p.Name, Display: p.Display, Number: g.id(), Client: g.Called, Reason: g.Ended,
	})
}

// known is this process's copy of the logins in the store. The store calls [Server.learn] for each login at the start, and again
// whenever a login changes. A known may be used by several goroutines at the same time.
type known struct {
	mu       sync.RWMutex
	byNumber map[string]*entry
	all      bool // true once learn has got all logins that the store had at the start
}

// entry is one login in s.known. Its grant never changes: a changed login gets a new entry.
type entry struct {
	*grant
	// life is cancelled when the login ends or the server is closed. All entries of a login share it.
	life context.Context
	end  context.CancelFunc
	// changed is closed when a newer entry replaces this one.
	changed chan struct{}
}

// learn puts a login that the store has reported into s.known. value is the encrypted login.
func (s *Server) learn(value []byte) {
	g := new(grant)
	if s.seals.grant.open(string(value), g) != nil {
		return // a login of another resource, or encrypted with a key that is no longer used
	}
	k := &s.known
	k.mu.Lock()
	defer k.mu.Unlock()
	e := &entry{grant: g, changed: make(chan struct{})}
	if before := k.byNumber[g.Number]; before != nil {
		e.life, e.end = before.life, before.end
		close(before.changed)
	} else {
		e.life, e.end = context.WithCancel(s.ctx)
	}
	if g.Ended != "" {
		e.end()
	}
	k.byNumber[g.Number] = e
	if k.all {
		s.left(g)
	}
}

// learnedAll is called once, when learn has got all logins that the store had at the start. It calls [Parts.Left] for the
// principals whose last login has ended, because no process may have been running at that time.
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

// left calls [Parts.Left] if the login g has ended and its principal has no other valid login with a client. It ignores logins of
// mcpx's own pages: the user of such a page may still call mcpx with tokens of the issuer. The caller holds known.mu.
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

// goesOn reports whether a client is logged in by this login. It returns false if the code of the login was not used yet, because
// such a login may never begin. It also returns false for logins of mcpx's own pages: mcpx asks the issuer about such a login only
// while somebody looks at the page.
func (g *grant) goesOn() bool {
	return g.Ended == "" && g.Client != "" && g.Next > 0 && !expired(g.Until)
}

// find returns the newest entry of a login, or nil if this process does not know the login.
func (s *Server) find(number string) *entry {
	s.known.mu.RLock()
	defer s.known.mu.RUnlock()
	return s.known.byNumber[number]
}

// validGrants returns the logins that have neither ended nor expired.
func (s *Server) validGrants() (all []*grant) {
	s.known.mu.RLock()
	defer s.known.mu.RUnlock()
	for _, e := range s.known.byNumber {
		if e.Ended == "" && !expired(e.Until) {
			all = append(all, e.grant)
		}
	}
	return all
}

// sweepEvery is the least time between two sweeps.
const sweepEvery = time.Hour

// sweep ends logins that were not renewed in time. It also removes two kinds of logins from s.known: ended logins whose access
// tokens have expired, and logins whose code was not used in time. sweep does nothing if the last sweep was less than sweepEvery
// ago.
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

// lifeOf returns a context that is cancelled when the login ends, or nil if the login has ended already. If this process does not
// know the login, another process may have begun it a moment ago. In this case lifeOf returns the context of the server, and the
// login's access tokens are valid until they expire or the server is closed.
func (s *Server) lifeOf(number string) context.Context {
	e := s.find(number)
	switch {
	case e == nil:
		return s.ctx
	case e.Ended != "":
		return nil
	}
	return e.life
}

// Standing returns the user of a login of mcpx's own pages. number is the string that [Parts.SignedIn] got. If this process does
// not know the login, Standing looks in the store. If the login was last renewed more than accessTime ago, Standing first asks the
// issuer. The errors are [identity.ErrInvalid] and [identity.ErrUnavailable].
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
	return &identity.Proof{Principal: s.principal(&e.Who), Revoked: e.life, Until: until}, nil
}

// ofPage decides whether a login of mcpx's own pages must be renewed now. It returns nil if the login must be renewed, errEnded if
// the login has ended or belongs to a client, and errNothing if another request has just renewed it. ofPage is the parameter accept
// of [Server.renewed].
func ofPage(g *grant) error {
	switch {
	case g.Ended != "" || g.Client != "" || expired(g.Until):
		return errEnded
	case g.Renewed+int64(accessTime/time.Second) > time.Now().Unix():
		return errNothing
	}
	return nil
}
