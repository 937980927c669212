package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

const (
	// linkLife is how long a link can be used.
	linkLife = 2 * time.Minute
	// If nobody has used the page for UnusedFor, it closes.
	UnusedFor = 30 * time.Minute
	// maxLinks is the maximum number of links, and also of sessions. If there is one more, the oldest ends.
	maxLinks = 20
	// sessionHeader is the header with the key of a session. The key is not in a cookie for two reasons: browsers send the cookies
	// of 127.0.0.1 to the servers on all its ports, and some browsers keep no Secure cookie that came over http.
	sessionHeader = "X-Mcpx-Session"
)

// Links lets a user of this machine see the page: mcpx ui prints a link with a secret, which works once. The page exchanges the
// secret for the key of a session, which only the browser tab with the page has. A Links may be used by several goroutines at the
// same time.
type Links struct {
	// Host is the address at which the page is served, with the port.
	Host string

	mu       sync.Mutex
	links    []link // the oldest first
	sessions []string
	used     time.Time
	closed   bool
}

type link struct {
	secret string
	until  time.Time
}

// NewLinks returns the links of the page at host, an address of this machine.
func NewLinks(host string) *Links { return &Links{Host: host, used: time.Now()} }

// New returns the URL of a new link, or "" if the page is closed. The secret is in the fragment, which browsers send to no
// server.
func (l *Links) New() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ""
	}
	one := link{rand.Text(), time.Now().Add(linkLife)}
	l.links, l.used = append(l.links, one), time.Now()
	l.links = l.links[max(0, len(l.links)-maxLinks):]
	return "http://" + l.Host + "/#link=" + one.secret
}

// Unused reports whether the page is closed, or was not used for UnusedFor. If so, New makes no more links, and the caller must
// call Close. Only actions of a person are a use of the page, not the requests that an open page sends by itself.
func (l *Links) Unused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = l.closed || time.Since(l.used) >= UnusedFor
	return l.closed
}

// Close closes the page: all links and sessions become invalid, and New makes no more links.
func (l *Links) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.links, l.sessions = true, nil, nil
}

func (l *Links) use() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
}

// addressed reports whether the header Host of a request names this machine. Another name means that a foreign web page has pointed
// its own name at this machine (DNS rebinding).
func (l *Links) addressed(r *http.Request) bool {
	_, port, err := net.SplitHostPort(l.Host)
	return err == nil && (r.Host == l.Host || r.Host == net.JoinHostPort("localhost", port))
}

// signIn exchanges the secret of a link for the key of a session. The secret cannot be used again.
func (l *Links) signIn(w http.ResponseWriter, secret string) {
	l.mu.Lock()
	at, now := -1, time.Now()
	for i, one := range l.links {
		if subtle.ConstantTimeCompare([]byte(one.secret), []byte(secret)) == 1 && now.Before(one.until) {
			at = i
		}
	}
	key := ""
	if at >= 0 {
		key = rand.Text() + rand.Text()
		l.links = slices.Delete(l.links, at, at+1)
		l.sessions = append(l.sessions, key)
		l.sessions = l.sessions[max(0, len(l.sessions)-maxLinks):]
		l.used = now
	}
	l.mu.Unlock()
	if key == "" {
		Refuse(w, http.StatusUnauthorized, "sign_in", "this link was used already or is too old; run mcpx ui again")
		return
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]string{"session": key})
}

// signOut ends the session of a request.
func (l *Links) signOut(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.session(r); at >= 0 {
		l.sessions = slices.Delete(l.sessions, at, at+1)
	}
}

// session returns the index of the session of a request, or -1. The caller holds the lock.
func (l *Links) session(r *http.Request) (at int) {
	at = -1
	for i, key := range l.sessions {
		if subtle.ConstantTimeCompare([]byte(key), []byte(r.Header.Get(sessionHeader))) == 1 {
			at = i
		}
	}
	return at
}

// viewer accepts a request that has the key of a session. The proof that it returns has no principal, because this user needs none,
// as over stdio.
func (l *Links) viewer(r *http.Request) (*identity.Proof, *refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session(r) < 0 {
		return nil, &refusal{http.StatusUnauthorized, "sign_in", "run mcpx ui again", errors.New("there is no such session")}
	}
	return &identity.Proof{Revoked: context.Background()}, nil
}

func (p *Page) mode() string {
	if p.Links != nil {
		return "desk"
	}
	return "hosted"
}

// sendMode tells the page how its viewers sign in: with links of mcpx ui (desk), or otherwise (hosted). It also sends the address
// where viewers sign in without a token; empty if there is none.
func (p *Page) sendMode(w http.ResponseWriter, _ *http.Request) {
	httpd.WriteJSON(w, http.StatusOK, map[string]string{"mode": p.mode(), "sign_in": p.Browsers.Link()})
}
