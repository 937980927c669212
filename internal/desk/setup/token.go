package setup

import (
	"errors"
	"fmt"
)

// ErrNoToken is the error of an edit of a token that is not in the config.
var ErrNoToken = errors.New("no such token")

// ErrHasToken is the error of a new token for a name that has one.
var ErrHasToken = errors.New("has a token already")

// SetToken puts the digest of a token into the text of a config, in place of the one that
// the name has only if replace is true, else the error is [ErrHasToken]. Its groups and
// scopes stay where none are given.
func SetToken(data []byte, name, digest string, groups, scopes []string, replace bool) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	at := []string{"auth", "tokens", name}
	if d.objectAt(at...) == nil {
		entry := object{{"sha256", digest}}
		if groups != nil {
			entry = append(entry, field{"groups", groups})
		}
		if scopes != nil {
			entry = append(entry, field{"scopes", scopes})
		}
		if d, err = d.set(entry, at...); err != nil {
			return nil, err
		}
		return d.data(), nil
	}
	if !replace {
		return nil, fmt.Errorf("%s %w", name, ErrHasToken)
	}
	d, err = d.set(digest, append(at, "sha256")...)
	if err == nil && groups != nil {
		d, err = d.set(groups, append(at, "groups")...)
	}
	if err == nil && scopes != nil {
		d, err = d.set(scopes, append(at, "scopes")...)
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
