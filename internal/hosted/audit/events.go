package audit

import "log/slog"

// CallBegan and CallEnded are the events that package app writes for each message to a server. Without audit.required, there is no
// CallBegan for a message that changes nothing. Their member "call" numbers the messages since the process opened the trail.
const (
	CallBegan = "call_began"
	CallEnded = "call_ended"
)

// These are the events of records about logins.
const (
	LoginBegan   = "login"         // a user has logged in
	LoginEnded   = "login_ended"   // a login is no longer valid
	LoginRefused = "login_refused" // an attempt to log in failed: the user was refused, or there was an error
)

// Login is a record about a login. Either a user logs in to mcpx, with a client or a browser, or a principal logs in at an
// upstream. Empty fields are left out of the record. No field may contain a secret: Number identifies a login, and is never a
// token.
type Login struct {
	Event string
	// Principal is the name of the principal ([caller.Principal.Name]), Display is its display name, and Subject is its ID at
	// the issuer (the claim sub).
	Principal, Display, Subject string
	// Number identifies the login, so that the record of its end can be found.
	Number string
	// Client says which client logs in, for example by its name or redirect URI.
	Client string
	// Server is the upstream at which the principal has logged in; empty for logins at mcpx itself.
	Server string
	// Reason says why a login ended or was refused, such as "ended by an administrator".
	Reason string
	// Remote is the address that the request came from.
	Remote string
}

// Logins records what happens to logins. Login must not block, and may be called by several goroutines at the same time.
type Logins interface{ Login(Login) }

// Attrs returns the members of the record, without empty ones.
func (l *Login) Attrs() (attrs []slog.Attr) {
	return Present(nil, [][2]string{
		{"principal", l.Principal}, {"display", l.Display}, {"subject", l.Subject}, {"login", l.Number}, {"client", l.Client},
		{"server", l.Server}, {"reason", l.Reason}, {"remote", l.Remote},
	})
}

// Present appends to attrs those members whose value is not empty. Each member is a name and a value.
func Present(attrs []slog.Attr, members [][2]string) []slog.Attr {
	for _, one := range members {
		if one[1] != "" {
			attrs = append(attrs, slog.String(one[0], one[1]))
		}
	}
	return attrs
}
