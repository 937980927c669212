package setup

import (
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ErrNoToken is the error of RemoveToken if there is no such token.
var ErrNoToken = errors.New("no such token")

// Token is a client's token as it is stored in the config.
type Token struct {
	SHA256 string // the digest of the token, in hexadecimal
	// Groups and Scopes are what the token's owner gets with this token. nil means to copy them from another token of the same owner,
	// if there is one.
	Groups, Scopes []string
	// Expires is when the token ends, in the form of RFC 3339; empty means never.
	Expires string
}

// idDigits is the length of a token's ID. The ID is the beginning of the token's digest.
const idDigits = 8

// SetToken writes a token into the text of a config. The parameter name is its owner. The key of the token is NAME, or NAME/ID
// if the owner already has a token with the key NAME. If replace is true, the new token gets the key of the owner's first token
// in the file, and SetToken removes the owner's other tokens; otherwise they stay.
func SetToken(data []byte, name string, t Token, replace bool) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		entry, of := object{{"sha256", t.SHA256}}, d.tokensOf(name)
		for _, one := range []struct {
			key string
			own []string
		}{{"groups", t.Groups}, {"scopes", t.Scopes}} {
			var value any = one.own
			if one.own == nil && len(of) > 0 {
				if inherited := d.value("auth", "tokens", of[0], one.key); inherited != nil {
					value = raw(inherited)
				}
			}
			if list, own := value.([]string); !own || list != nil {
				entry = append(entry, field{one.key, value})
			}
		}
		if t.Expires != "" {
			entry = append(entry, field{"expires", t.Expires})
		}
		switch {
		case len(of) == 0:
			return d.set(entry, "auth", "tokens", name)
		case !replace:
			key := name + "/" + t.SHA256[:min(idDigits, len(t.SHA256))]
			if !slices.Contains(of, name) {
				key = name
			}
			return d.set(entry, "auth", "tokens", key)
		}
		for _, other := range of[1:] {
			if err := d.remove("auth", "tokens", other); err != nil {
				return err
			}
		}
		if t.Expires == "" && d.value("auth", "tokens", of[0], "expires") != nil {
			if err := d.remove("auth", "tokens", of[0], "expires"); err != nil {
				return err
			}
		}
		for _, f := range entry {
			if err := d.set(f.value, "auth", "tokens", of[0], f.key); err != nil {
				return err
			}
		}
		return nil
	})
}

// tokensOf returns the keys of all tokens of an owner, in the order of the file.
func (d *jsonText) tokensOf(name string) (keys []string) {
	tokens := d.objectAt("auth", "tokens")
	if tokens == nil {
		return nil
	}
	for i := range tokens.Members {
		key := nameOf(&tokens.Members[i])
		if owner, _, _ := strings.Cut(key, "/"); owner == name {
			keys = append(keys, key)
		}
	}
	return keys
}

// RemoveToken removes all tokens of an owner from the text of a config or, if id is not empty, only the token with this ID. If
// there is no such token, the error is [ErrNoToken].
func RemoveToken(data []byte, name, id string) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		removed := false
		for _, key := range d.tokensOf(name) {
			if digest := d.value("auth", "tokens", key, "sha256"); id != "" {
				text, ok := hujson.Literal(nil), false
				if digest != nil {
					text, ok = digest.Value.(hujson.Literal)
				}
				if !ok || text.Kind() != '"' || !strings.EqualFold(text.String()[:min(idDigits, len(text.String()))], id) {
					continue
				}
			}
			if err := d.remove("auth", "tokens", key); err != nil {
				return err
			}
			removed = true
		}
		if !removed {
			return ErrNoToken
		}
		return nil
	})
}
