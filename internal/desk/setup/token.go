package setup

import (
	"errors"
	"fmt"
)

// Errors of SetToken and RemoveToken. Compare with errors.Is.
var (
	ErrNoToken  = errors.New("no such token")
	ErrHasToken = errors.New("has a token already")
)

// Token is a client's token as it is stored in the config.
type Token struct {
	SHA256 string // of the token, in hexadecimal
	// Groups and Scopes belong to the token's owner. If they are nil, SetToken does not change them in the config.
	Groups, Scopes []string
}

// SetToken writes a token into the text of a config, under a name. If that name already has a token and replace is false,
// the error is [ErrHasToken].
func SetToken(data []byte, name string, t Token, replace bool) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		entry := object{{"sha256", t.SHA256}}
		if t.Groups != nil {
			entry = append(entry, field{"groups", t.Groups})
		}
		if t.Scopes != nil {
			entry = append(entry, field{"scopes", t.Scopes})
		}
		if d.objectAt("auth", "tokens", name) == nil {
			return d.set(entry, "auth", "tokens", name)
		}
		if !replace {
			return fmt.Errorf("%s %w", name, ErrHasToken)
		}
		for _, f := range entry {
			if err := d.set(f.value, "auth", "tokens", name, f.key); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveToken removes the token of this name from the text of a config. If there is no such token, the error is
// [ErrNoToken].
func RemoveToken(data []byte, name string) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		if d.value("auth", "tokens", name) == nil {
			return ErrNoToken
		}
		return d.remove("auth", "tokens", name)
	})
}
