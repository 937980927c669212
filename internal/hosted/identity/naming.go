package identity

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"mcpx/internal/base/lru"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
)

const (
	// maxValue is the maximum length, in bytes, of the value of a claim that names a user. Longer values are refused. If they were
	// cut, two users could get the same name.
	maxValue = 200
	// maxShown is the maximum length, in characters, of a display name. Longer ones are cut.
	maxShown = 80
)

// emailClaim is the claim with the e-mail address of a user. Another claim says whether the issuer has verified the address.
const emailClaim = "email"

// Naming says from which claims the users of an issuer get their names.
type Naming struct {
	// Principal is the claim that has the name of a user; empty means that the subject is the name. Display is the claim that has
	// the display name of a user; empty means that users have no display names.
	Principal, Display string
	// Unverified also accepts an e-mail address if the issuer does not say whether it is verified.
	Unverified bool
}

// Value returns the value of the claim Naming.Principal, or "" if users are named by their subject. It fails if the claim is
// missing, if its value cannot be a name, or if users could forge the value, such as an e-mail address that the issuer has not
// verified. Addresses must be ASCII and are returned in lower case: people write them in both cases, and some letters outside ASCII
// become ASCII letters in lower case. The values of other claims stay as they are.
func (n Naming) Value(claim func(name string) (value any, there bool)) (string, error) {
	if n.Principal == "" || n.Principal == "sub" {
		return "", nil
	}
	found, _ := claim(n.Principal)
	value, _ := found.(string)
	switch {
	case value == "":
		return "", fmt.Errorf("the claim %s, by which users are named (principal_claim), is missing", n.Principal)
	case len(value) > maxValue || strings.ContainsFunc(value, unicode.IsSpace) || sanitize.Line(value, maxValue) != value:
		return "", fmt.Errorf("the claim %s (principal_claim) cannot be a name: it is too long, or has spaces or invisible characters", n.Principal)
	case n.Principal != emailClaim:
		return value, nil
	case strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", errors.New("the claim email (principal_claim) is no ASCII address")
	}
	if verified, said := Verified(claim); !verified && (said || !n.Unverified) {
		return "", errors.New("the issuer does not say that the address in the claim email (principal_claim) is verified")
	}
	return strings.ToLower(value), nil
}

// Verified returns the value of the claim email_verified. found is false if the token has no such claim.
func Verified(claim func(name string) (value any, there bool)) (verified, found bool) {
	value, found := claim("email_verified")
	return value == true || value == "true", found
}

// Shown returns the display name of a user, or "" if there is none. Users may be able to choose it, so no right may depend on it.
func (n Naming) Shown(claim func(name string) (value any, there bool)) string {
	if n.Display == "" {
		return ""
	}
	found, _ := claim(n.Display)
	value, _ := found.(string)
	return sanitize.Line(value, maxShown)
}

// OfIssuer returns the principal for a subject (the claim sub) of an issuer, without claims. Its name contains the issuer. So it
// differs from the names of static tokens and of subjects of other issuers.
func OfIssuer(url, subject string) *caller.Principal { return Named(url, subject, "") }

// Named returns the principal of a user. Its name is made from value, which is a result of [Naming.Value], or from the subject if
// value is "". The ID always comes from the subject. So if the issuer later gives the same address to another user, that user gets
// nothing that belongs to the first one.
func Named(url, subject, value string) *caller.Principal {
	_, short, _ := strings.Cut(url, "://")
	if value == "" {
		value = subject
	}
	return &caller.Principal{ID: url + " " + subject, Name: value + "@" + strings.TrimSuffix(short, "/")}
}

const (
	// NameHeld is how long a name stays reserved for the subject that used it last. If an issuer gives an address to another user,
	// the new user can log in with it after this time.
	NameHeld = 24 * time.Hour
	// maxNames is the size of the map of names ([lru.Map]).
	maxNames = 50_000
)

// names remembers which principal uses each name, so that no two subjects of an issuer have the same name at the same time. It may
// be used by several goroutines at the same time.
type names struct {
	mu   sync.Mutex
	held *lru.Map[string, holder]
}

// holder is the principal that used a name last.
type holder struct {
	id   string
	seen time.Time
}

func newNames() *names { return &names{held: lru.New[string, holder](maxNames, nil)} }

// take reserves the name of a principal and returns true, unless another principal has used the name within NameHeld.
func (n *names) take(p *caller.Principal, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	has := n.held.Find(p.Name)
	if has != nil && has.id != p.ID && now.Sub(has.seen) < NameHeld {
		return false
	}
	n.held.Put(p.Name, &holder{p.ID, now})
	return true
}

// unique returns an error if another subject of the issuer uses the name of the principal.
func (s *State) unique(p *caller.Principal) error {
	if s.names.take(p, time.Now()) {
		return nil
	}
	return invalid(ErrName(p.Name))
}

// ErrName returns the error for a name that another subject uses.
func ErrName(name string) error {
	return fmt.Errorf("another subject of the issuer is called %s, and was here less than %v ago (principal_claim must be unique)", name, NameHeld)
}
