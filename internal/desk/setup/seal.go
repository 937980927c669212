package setup

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// Secret is a credential that mcpx will store outside of the config. The config refers to it as ${keyring:NAME}.
type Secret struct{ Name, Value string }

// sealable has keys of a server's entry. Seal replaces the credentials in their values. In the value of the key oauth,
// [sealer.login] replaces them.
var sealable = []string{"command", "args", "env", "url", "urls", "httpUrl", "serverUrl", "headers", "http_headers"}

// Sealed is the result of [Seal].
type Sealed struct {
	Text    []byte   // the new text of the config
	Secrets []Secret // the credentials that the caller must store
	Servers int      // the number of servers in which a credential was replaced
	Left    []string // the places of credentials that are too large for the keyring, and are still in the config
}

// Seal replaces the credentials that the entries of servers have in plain text. It puts references to the keyring in their place,
// but stores nothing itself. The function stored returns the value that the keyring already has under a name; its result ok is
// false if there is none. maxBytes is the size of the largest credential that the keyring takes.
func Seal(file string, data []byte, o config.Options, stored func(name string) (value string, ok bool), maxBytes int) (
	all Sealed, err error,
) {
	cfg, err := config.Parse(file, data, o)
	if err != nil {
		return all, err
	}
	s := &sealer{stored: stored, maxBytes: maxBytes}
	all.Text, err = editJSON(data, func(d *jsonText) error {
		for _, key := range ownKeys {
			for _, one := range entriesIn(d.value(key)) {
				server := serverOf(cfg, one.name)
				entry, ok := one.value.Value.(*hujson.Object)
				if server == nil || !ok {
					continue
				}
				s.server, s.credentials = safeName(one.name), server.Credentials
				before := len(s.edits)
				s.entry(entry, []string{key, one.key})
				if len(s.edits) > before {
					all.Servers++
				}
			}
		}
		for _, e := range s.edits {
			if err := d.set(e.text, e.path...); err != nil {
				return err
			}
		}
		return nil
	})
	all.Secrets, all.Left = s.secrets, s.left
	return all, err
}

func serverOf(cfg *config.Config, written string) *config.Server {
	i := slices.IndexFunc(cfg.Servers, func(s config.Server) bool { return s.Name == cfg.Served(written) })
	if i < 0 {
		return nil
	}
	return &cfg.Servers[i]
}

// sealer collects the changes that [Seal] makes.
type sealer struct {
	stored      func(name string) (string, bool)
	maxBytes    int      // the size of the largest credential that the keyring takes
	left        []string // the places of credentials that are larger
	server      string   // the name of the current server
	credentials []string // the credentials of the current server, the longest first
	edits       []sealedString
	secrets     []Secret
}

// sealedString is the new text of a string in the config, with references in place of credentials. path has the keys and
// indexes that lead to the string.
type sealedString struct {
	path []string
	text string
}

// entry replaces the credentials of a server. path has the keys that lead to its entry.
func (s *sealer) entry(entry *hujson.Object, path []string) {
	for i := range entry.Members {
		value, name := &entry.Members[i].Value, nameOf(&entry.Members[i])
		login, isObject := value.Value.(*hujson.Object)
		switch {
		case slices.Contains(sealable, name):
			s.walk(value, append(slices.Clip(path), name))
		case name == "oauth" && isObject:
			s.login(login, append(slices.Clip(path), name))
		}
	}
}

// login replaces the credentials in the value of the key oauth.
func (s *sealer) login(oauth *hujson.Object, path []string) {
	for i := range oauth.Members {
		value, name := &oauth.Members[i].Value, nameOf(&oauth.Members[i])
		text, _ := value.Value.(hujson.Literal)
		// The value of key is the private key itself (PEM), or the name of a file, which is no secret.
		isKey := name == "key" && strings.Contains(text.String(), "-----BEGIN")
		if isKey || name == "client_secret" || name == "clientSecret" {
			s.walk(value, append(slices.Clip(path), name))
		}
	}
}

func (s *sealer) walk(v *hujson.Value, path []string) {
	switch value := v.Value.(type) {
	case hujson.Literal:
		if value.Kind() != '"' {
			return
		}
		if text := s.seal(value.String(), path); text != value.String() {
			s.edits = append(s.edits, sealedString{slices.Clone(path), text})
		}
	case *hujson.Object:
		for i := range value.Members {
			s.walk(&value.Members[i].Value, append(slices.Clip(path), nameOf(&value.Members[i])))
		}
	case *hujson.Array:
		for i := range value.Elements {
			s.walk(&value.Elements[i], append(slices.Clip(path), strconv.Itoa(i)))
		}
	}
}

// scheme matches the authentication scheme at the beginning of an Authorization header.
var scheme = pattern.New(`(?i)^(?:bearer|basic|token|apikey) `)

// seal returns a string with references in place of its credentials. path has the keys and indexes that lead to the
// string in the config.
func (s *sealer) seal(text string, path []string) string {
	whole := strings.TrimSpace(text)
	if slices.Contains(s.credentials, whole) && !scheme.MatchString(whole) && !strings.Contains(whole, "${") {
		if s.tooLarge(whole, path) {
			return text // its single lines may be among s.credentials, but must not be replaced one by one
		}
		return strings.Replace(text, whole, s.reference(whole, path), 1)
	}
	for i, credential := range s.credentials {
		// If a credential contains another one, only the inner one is replaced: in "Bearer X", only X.
		within := slices.ContainsFunc(s.credentials[i+1:], func(other string) bool {
			return len(other) < len(credential) && strings.Contains(credential, other)
		})
		if !within && !strings.Contains(credential, "${") && strings.Contains(text, credential) && !s.tooLarge(credential, path) {
			text = outside(text, credential, func() string { return s.reference(credential, path) })
		}
	}
	return text
}

// tooLarge reports whether the keyring does not take a credential. If so, tooLarge adds the place path to s.left.
func (s *sealer) tooLarge(credential string, path []string) bool {
	if len(credential) <= s.maxBytes {
		return false
	}
	if place := strings.Join(path, "."); !slices.Contains(s.left, place) {
		s.left = append(s.left, place)
	}
	return true
}

var anyReference = pattern.New(`\$\{[^}]*\}`)

// outside replaces a credential in text by the result of the function reference. It looks only outside of the references that text
// has already.
func outside(text, credential string, reference func() string) string {
	var b strings.Builder
	for {
		at := anyReference.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		part := text[:at[0]]
		if strings.Contains(part, credential) {
			part = strings.ReplaceAll(part, credential, reference())
		}
		b.WriteString(part + text[at[0]:at[1]])
		if text = text[at[1]:]; text == "" {
			return b.String()
		}
	}
}

var unfitSecret = pattern.New(`[^A-Za-z0-9._-]+`)

// reference returns a reference to the credential in value, and adds the credential to s.secrets if it is not there. path has
// the keys and indexes that lead to the string with the credential. The name of the secret consists of the server's name and
// the last key of path, or "argument" in place of an index. A number follows if the name is in use for another credential.
func (s *sealer) reference(value string, path []string) string {
	key := path[len(path)-1]
	if _, err := strconv.Atoi(key); err == nil {
		key = "argument"
	}
	name := unfitSecret.ReplaceAllString(strings.TrimLeft(s.server, "._-")+"."+key, "_")
	first := name[:min(len(name), 60)]
	for i := 2; ; i++ {
		at := slices.IndexFunc(s.secrets, func(one Secret) bool { return one.Name == name })
		kept, known := s.stored(name)
		switch {
		case at >= 0 && s.secrets[at].Value == value:
			return "${keyring:" + name + "}"
		case at < 0 && (!known || kept == value):
			s.secrets = append(s.secrets, Secret{name, value})
			return "${keyring:" + name + "}"
		}
		name = first + "-" + strconv.Itoa(i)
	}
}
