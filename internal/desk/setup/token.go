package setup

import (
	"errors"
	"fmt"
)

// ErrNoToken is the error of an edit of a token that is not in the config.
var ErrNoToken = errors.New("no such token")

// ErrHasToken is the error of a new token for a name that has one.
var ErrHasToken = errors.New("has a token already")

// Token is what a config has of a client's token.
type Token struct {
	SHA256 string // hexadecimal
	// Groups and Scopes are those of its owner. With nil those that the config has stay.
	Groups, Scopes []string
}

// SetToken puts a token into the text of a config, under a name. A name that has a token
// gets another one only if replace is true, else the error is [ErrHasToken].
func SetToken(data []byte, name string, t Token, replace bool) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	at := []string{"auth", "tokens", name}
	if d.objectAt(at...) == nil {
		entry := object{{"sha256", t.SHA256}}
		if t.Groups != nil {
			entry = append(entry, field{"groups", t.Groups})
		}
		if t.Scopes != nil {
			entry = append(entry, field{"scopes", t.Scopes})
		}
		if d, err = d.set(entry, at...); err != nil {
			return nil, err
		}
		return d.data(), nil
	}
	if !replace {
		return nil, fmt.Errorf("%s %w", name, ErrHasToken)
	}
	d, err = d.set(t.SHA256, append(at, "sha256")...)
	if err == nil && t.Groups != nil {
		d, err = d.set(t.Groups, append(at, "groups")...)
	}
	if err == nil && t.Scopes != nil {
		d, err = d.set(t.Scopes, append(at, "scopes")...)
	}
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

// RemoveToken takes a token out of the text of a config. The error is [ErrNoToken] where
// it is not there.
func RemoveToken(data []byte, name string) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	if d.value("auth", "tokens", name) == nil {
		return nil, ErrNoToken
	}
	if d, err = d.remove("auth", "tokens", name); err != nil {
		return nil, err
	}
	return d.data(), nil
}
