package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// struckOut is the text that a person sees in place of a secret in an entry.
const struckOut = "••••••"

// ErrStruckOut says that an edited entry has struckOut at a place where the file has no secret.
var ErrStruckOut = errors.New("is struck out, but the file has no secret there: enter the value")

// Shown is the entry of a server in a form that a person may see: without comments, with struckOut in place of secrets, and with
// references such as ${NAME} as they are written.
type Shown struct {
	Entry json.RawMessage
	// Secret has the JSON pointers of the strings and numbers that struckOut replaces in Entry.
	Secret []string
	// Executes has the commands that mcpx runs because the entry refers to them with ${command:…}.
	Executes []string
	// Digest is a digest of the entry in the file, with which a later change of the file can be detected. It is empty for an entry that
	// is not in a file.
	Digest string
}

// ShowServer finds the entry of a server in the text of a config, and returns it as a Shown. If there is no such server, the error is
// [ErrNoServer].
func ShowServer(data []byte, name string) (Shown, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return Shown{}, err
	}
	path := d.server(name)
	if path == nil {
		return Shown{}, ErrNoServer
	}
	v := d.value(path...)
	shown, err := show(v)
	sum := sha256.Sum256(v.Pack())
	shown.Digest = hex.EncodeToString(sum[:])
	return shown, err
}

// ShowEntry returns the Shown of an entry that no file has yet. Its Digest is therefore empty. entry is an [Entry] or raw JSON.
func ShowEntry(entry any) (Shown, error) {
	text, err := marshal(entry)
	if err != nil {
		return Shown{}, err
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return Shown{}, err
	}
	return show(&v)
}

func show(v *hujson.Value) (s Shown, err error) {
	copied := v.Clone()
	copied.Standardize()
	w := &striker{secrets: literalSecrets(raw(v))}
	w.walk(&copied, "", nil)
	slices.Sort(w.executes)
	s.Entry, s.Secret, s.Executes = raw(&copied), w.struck, slices.Compact(w.executes)
	return s, nil
}

// literalSecrets returns those texts in an entry that package config considers secret. It does not resolve references such as
// ${NAME}.
func literalSecrets(entry []byte) []string {
	text, err := marshal(object{{"mcpServers", object{{"server", json.RawMessage(entry)}}}})
	if err != nil {
		return nil
	}
	nothing := config.Options{
		Getenv:   func(string) (string, bool) { return "", true },
		ReadFile: func(string) ([]byte, error) { return nil, nil },
	}
	cfg, err := config.Parse("entry", text, nothing)
	if err != nil || len(cfg.Servers) == 0 {
		return nil
	}
	return cfg.Servers[0].Secrets
}

// striker strikes out the secrets of an entry.
type striker struct {
	secrets  []string
	struck   []string // JSON pointers
	executes []string
}

// walk replaces the secrets in a value by struckOut. jsonPointer leads to the value; keys has the keys of the objects around it,
// the outermost first.
func (w *striker) walk(v *hujson.Value, jsonPointer string, keys []string) {
	switch value := v.Value.(type) {
	case hujson.Literal:
		if value.Kind() == '"' && w.secret(value.String(), keys) {
			v.Value = hujson.String(struckOut)
			w.struck = append(w.struck, jsonPointer)
		} else if value.Kind() == '0' && len(keys) > 0 && config.SecretName(keys[len(keys)-1]) {
			v.Value = hujson.String(struckOut)
			w.struck = append(w.struck, jsonPointer)
		}
	case *hujson.Object:
		for i := range value.Members {
			name := nameOf(&value.Members[i])
			w.walk(&value.Members[i].Value, jsonPointer+"/"+pointer.Replace(name), append(slices.Clip(keys), name))
		}
	case *hujson.Array:
		for i := range value.Elements {
			under := keys
			if i > 0 { // the argument after an option such as --token is judged by the option's name
				if before, ok := value.Elements[i-1].Value.(hujson.Literal); ok && strings.HasPrefix(before.String(), "-") {
					under = append(slices.Clip(keys), strings.TrimLeft(before.String(), "-"))
				}
			}
			w.walk(&value.Elements[i], jsonPointer+"/"+strconv.Itoa(i), under)
		}
	}
}

var (
	// pointer escapes a key for a JSON pointer (RFC 6901).
	pointer = strings.NewReplacer("~", "~0", "/", "~1")
	// plainReference matches a reference without a default value. A default value could be a secret.
	plainReference = pattern.New(`\$\{(?:(?:keyring|file|command|env):)?[^}:]*\}|\$\{(?:file|command|keyring):[^}]*\}`)
	commandOf      = pattern.New(`\$\{command:([^}]*)\}`)
	// publicHeaders are HTTP headers whose values are never secret. The values of other headers may be secret.
	publicHeaders = []string{"accept", "accept-language", "content-type", "user-agent", "mcp-protocol-version"}
)

// secret reports whether a string in an entry may contain a secret. keys has the keys of the objects around the string. If the
// string contains references to commands, such as ${command:NAME}, secret also adds these commands to w.executes.
func (w *striker) secret(text string, keys []string) bool {
	for _, found := range commandOf.FindAllStringSubmatch(text, -1) {
		w.executes = append(w.executes, found[1])
	}
	rest := plainReference.ReplaceAllString(text, "")
	rest = strings.TrimSpace(scheme.ReplaceAllString(strings.TrimLeft(rest, " ")+" ", ""))
	if rest == "" || len(keys) == 0 {
		return false
	}
	if slices.ContainsFunc(w.secrets, func(secret string) bool { return strings.Contains(rest, secret) }) {
		return true
	}
	name, header := keys[len(keys)-1], slices.Contains([]string{"headers", "http_headers"}, keys[0]) && len(keys) == 2
	return config.SecretName(name) || header && !slices.Contains(publicHeaders, strings.ToLower(name))
}

// ReplaceServer replaces the entry of a server by an entry that a person has edited, and changes only what differs. A string
// that is [struckOut] keeps the value that the file has at the same place. If the file has no secret there, the error is
// [ErrStruckOut]. If the server is not in the config, it is [ErrNoServer].
func ReplaceServer(data []byte, name string, entry json.RawMessage) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, path []string) error {
		now, err := hujson.Parse(entry)
		if err != nil {
			return err
		}
		was := d.value(path...).Clone()
		if err := unstrike(&now, &was, &was, ""); err != nil {
			return err
		}
		o, isObject := now.Value.(*hujson.Object)
		before, wasObject := was.Value.(*hujson.Object)
		if !isObject || !wasObject {
			return fmt.Errorf("%s is not an object", name)
		}
		if d.objectAt(path[0]) == nil && member(o, "name") < 0 { // an entry in an array must contain its name
			o.Members = slices.Insert(o.Members, 0, before.Members[member(before, "name")])
		}
		return d.replaceMembers(o, before, path)
	})
}

// unstrike replaces each [struckOut] in newValue, which is a value in the edited entry. It takes the secret from oldValue, which
// the old entry has at the same place. root is the whole old entry; jsonPointer leads to newValue.
func unstrike(newValue, oldValue, root *hujson.Value, jsonPointer string) error {
	switch value := newValue.Value.(type) {
	case hujson.Literal:
		if value.Kind() != '"' || value.String() != struckOut {
			return nil
		}
		shown, err := show(root)
		if err != nil || oldValue == nil || !slices.Contains(shown.Secret, jsonPointer) {
			return fmt.Errorf("%s %w", jsonPointer, ErrStruckOut)
		}
		newValue.Value = oldValue.Value
	case *hujson.Object:
		for i := range value.Members {
			name := nameOf(&value.Members[i])
			if err := unstrike(&value.Members[i].Value, childOf(oldValue, name), root, jsonPointer+"/"+pointer.Replace(name)); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range value.Elements {
			name := strconv.Itoa(i)
			if err := unstrike(&value.Elements[i], childOf(oldValue, name), root, jsonPointer+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func childOf(v *hujson.Value, key string) *hujson.Value {
	if v == nil {
		return nil
	}
	return child(v, key)
}

// replaceMembers replaces the members of oldObject, the object at path, by those of newObject. It writes only the members that
// differ, so the others keep their formatting.
func (d *jsonText) replaceMembers(newObject, oldObject *hujson.Object, path []string) error {
	for i := range oldObject.Members {
		if name := nameOf(&oldObject.Members[i]); member(newObject, name) < 0 && d.value(append(slices.Clip(path), name)...) != nil {
			if err := d.remove(append(slices.Clip(path), name)...); err != nil {
				return err
			}
		}
	}
	for i := range newObject.Members {
		name, value := nameOf(&newObject.Members[i]), &newObject.Members[i].Value
		at := append(slices.Clip(path), name)
		var err error
		before := member(oldObject, name)
		switch {
		case before < 0:
			err = d.set(raw(value), at...)
		case string(raw(value)) == string(raw(&oldObject.Members[before].Value)):
		default:
			inner, isObject := value.Value.(*hujson.Object)
			innerWas, wasObject := oldObject.Members[before].Value.Value.(*hujson.Object)
			if isObject && wasObject {
				err = d.replaceMembers(inner, innerWas, at)
			} else {
				err = d.set(raw(value), at...)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
