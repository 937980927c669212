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
	// maxValue is the most bytes of a claim that is part of a name. Longer ones are refused, not cut: two could be cut to one.
	maxValue = 200
	// maxShown is the most characters of a display name.
	maxShown = 80
)

// emailClaim is the claim with the address of a user. The issuer says in another claim whether it is verified.
const emailClaim = "email"

// Naming says which claims an issuer's users are named by.
type Naming struct {
	// Principal is the claim that identifies a user beside the issuer; empty means the subject. Display is the claim with
	// a name for people; empty means none.
	Principal, Display string
	// Unverified accepts an email address of which the issuer does not say whether it is verified.
	Unverified bool
}

// Value returns the value of the claim that names the user; empty means the subject. It returns an error if the user
// could have chosen the value to be somebody else: if the claim is missing, or is an address that the issuer has not
// verified. Addresses are in lower case, as people write them in any, and ASCII only, since other letters can become
// ASCII ones in lower case. Other claims are compared exactly.
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

// Verified reports whether an issuer says that a user's address is verified, and whether it says anything about it.
func Verified(claim func(name string) (value any, there bool)) (verified, said bool) {
	value, said := claim("email_verified")
	return value == true || value == "true", said
}

// Shown returns the display name of a user; empty if there is none. Users may be able to choose it, so nothing may depend on it.
func (n Naming) Shown(claim func(name string) (value any, there bool)) string {
	if n.Display == "" {
		return ""
	}
	found, _ := claim(n.Display)
	value, _ := found.(string)
	return sanitize.Line(value, maxShown)
}

// OfIssuer returns the principal for a subject (the claim sub) of an issuer, without claims. Its name contains the
// issuer, so it differs from the names of static tokens and of other issuers' subjects.
func OfIssuer(url, subject string) *caller.Principal { return Named(url, subject, "") }

// Named is [OfIssuer] for a user who is named by the value of another claim ([Naming.Value]); empty means the subject. The ID is
// made of the subject in any case: what belongs to somebody does not pass to the next who gets the same address.
func Named(url, subject, value string) *caller.Principal {
	_, short, _ := strings.Cut(url, "://")
	if value == "" {
		value = subject
	}
	return &caller.Principal{ID: url + " " + subject, Name: value + "@" + strings.TrimSuffix(short, "/")}
}

const (
	// NameHeld is how long a name belongs to the subject that had it last. An address that the issuer gives to somebody
	// else works for the next one after that time.
	NameHeld = 24 * time.Hour
	// mostNames is the most names that are remembered ([lru.Map]).
	mostNames = 50_000
)

// names knows which principal has each name of an issuer's users, so that two subjects never have one name. Safe for
// concurrent use.
type names struct {
	mu   sync.Mutex
	held *lru.Map[string, holder]
}

// holder is the principal that has a name.
type holder struct {
	id   string
	seen time.Time
}

func newNames() *names { return &names{held: lru.New[string, holder](mostNames, nil)} }

// take reports whether the principal may use its name: nobody else has used it within NameHeld.
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

// unique returns an error if another subject of the issuer has the name of the principal.
func (s *State) unique(p *caller.Principal) error {
	if s.names.take(p, time.Now()) {
		return nil
	}
	return invalid(ErrName(p.Name))
}

// ErrName returns the error for a name that another subject has.
func ErrName(name string) error {
	return fmt.Errorf("another subject of the issuer is called %s, and was here less than %v ago (principal_claim must be unique)", name, NameHeld)
}
