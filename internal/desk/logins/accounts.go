package logins

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpx/internal/base/conf"
)

// Account is a login of a principal with a server, which may not be in the config any more.
type Account struct {
	ID        string // what people call it
	Server    string
	URL       string
	Principal string // its ID
	Name      string // of the principal when it logged in; the ID if that is not known
	Redirect  string // the page of mcpx at which it logged in; empty if that is not known
	Began     time.Time
	Renewed   time.Time
	private   bool
}

// idLength is the length of an ID, which is the beginning of the name of a file.
const idLength = 10

// Accounts returns all logins of principals, the newest first. What cannot be read is left out, and logged.
func (l *Logins) Accounts(ctx context.Context) (all []Account, err error) {
	files, err := l.store.all()
	for _, file := range files {
		var one login
		if err := l.store.read(ctx, file, &one); err != nil {
			l.log.Warn("the login of a principal at a server cannot be read", "file", file, "err", err)
			continue
		}
		if one.Principal == "" || file != loginFile(one.at()) {
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

// AccountID returns the ID of the login of a principal with s.
func AccountID(s Server) string { return loginFile(s)[:idLength] }

// End is [Logins.Revoke] for an account.
func (l *Logins) End(ctx context.Context, a *Account) (ended bool, err error) {
	return l.Revoke(ctx, a.at())
}

func (a *Account) at() Server {
	return Server{Name: a.Server, URL: a.URL, Principal: a.Principal, OAuth: conf.OAuth{AllowPrivate: a.private}}
}

// at returns the server of a principal's login, as far as the name of the file depends on it.
func (l *login) at() Server { return Server{Name: l.Server, URL: l.URL, Principal: l.Principal} }
