package logins

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpx/internal/base/conf"
)

// Account describes a login of a principal at a server. The server may no longer be in the config.
type Account struct {
	ID        string // the short ID with which administrators name the login
	Server    string
	URL       string
	Principal string // the principal's ID
	Name      string // the name that the principal had at the login; its ID if the name is not known
	Redirect  string // the URL of mcpx to which the browser came back after the login; empty if not known
	Began     time.Time
	Renewed   time.Time
	private   bool
}

// idLength is the length of an Account's ID. The ID is the beginning of the name of the file with the login.
const idLength = 10

// Accounts returns all logins of principals, the newest first. A login that cannot be read is left out and logged.
func (l *Logins) Accounts(ctx context.Context) (all []Account, err error) {
	files, err := l.store.all()
	for _, file := range files {
		var one login
		if err := l.store.read(ctx, file, &one); err != nil {
			l.log.Warn("the login of a principal at a server cannot be read", "file", file, "err", err)
			continue
		}
		if one.Principal == "" || file != loginFile(one.server()) {
			continue
		}
		all = append(all, Account{
			ID: file[:idLength], Server: one.Server, URL: one.URL, Principal: one.Principal, Name: cmp.Or(one.Name, one.Principal),
			Redirect: one.Redirect, Began: cmp.Or(one.Began, one.Issued), Renewed: one.Issued, private: one.Private,
		})
	}
	slices.SortFunc(all, func(a, b Account) int { return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.ID, b.ID)) })
	return all, err
}

// AccountID returns the [Account.ID] of the login of s.Principal at s.
func AccountID(s Server) string { return loginFile(s)[:idLength] }

// End revokes a login at the authorization server and deletes it. existed is false if there is no such login any more, or if it
// cannot be locked or deleted. If the login cannot be revoked, err says why; it is deleted nevertheless.
func (l *Logins) End(ctx context.Context, a *Account) (existed bool, err error) {
	return l.Revoke(ctx, a.server())
}

func (a *Account) server() Server {
	return Server{Name: a.Server, URL: a.URL, Principal: a.Principal, OAuth: conf.OAuth{AllowPrivate: a.private}}
}

// server returns a Server with the fields from which loginFile makes the name of the login's file.
func (l *login) server() Server { return Server{Name: l.Server, URL: l.URL, Principal: l.Principal} }
