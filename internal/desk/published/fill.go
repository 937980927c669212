package published

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/setup"
)

// Filled has the values with which [Way.Entry] makes a server's entry for the config.
type Filled struct {
	// Given has the values by name. In place of a secret it has a reference such as ${keyring:NAME}.
	Given map[string]string
	// Secrets are the secrets that the caller must store in the keyring.
	Secrets []setup.Secret
	// Unset has the environment variables that the entry takes secrets from; the user must set them for mcpx.
	Unset []string
}

// Fill completes the values that a user has given for the server called name: it adds the defaults of required values, and
// replaces secrets by references. If the parameter keyring is true, secrets are for the keyring; otherwise the user must set
// environment variables. A secret that begins with ${, as a reference does, stays. missing has the names of required values
// that have no default and that the user has not given. The error names a value that the server does not take.
func (w *Way) Fill(name string, values map[string]string, keyring bool) (f Filled, missing []string, err error) {
	f.Given = maps.Clone(values)
	if f.Given == nil {
		f.Given = map[string]string{}
	}
	asks := w.Asks()
	for key := range values {
		if !slices.ContainsFunc(asks, func(ask Ask) bool { return ask.Name == key }) {
			return f, nil, fmt.Errorf("it takes no value %s", sanitize.Line(key, 100))
		}
	}
	for _, ask := range asks {
		value := cmp.Or(f.Given[ask.Name], ask.Default)
		if f.Given[ask.Name] == "" {
			delete(f.Given, ask.Name)
		}
		switch {
		case value == "" && ask.Required:
			missing = append(missing, ask.Name)
		case value == "" || f.Given[ask.Name] == "" && !ask.Required:
		case !ask.Secret || strings.HasPrefix(value, "${"):
			f.Given[ask.Name] = value
		case keyring:
			secret := setup.Secret{Name: SecretName(name, ask), Value: value}
			f.Secrets, f.Given[ask.Name] = append(f.Secrets, secret), "${keyring:"+secret.Name+"}"
		default:
			f.Unset, f.Given[ask.Name] = append(f.Unset, VariableName(ask)), "${"+VariableName(ask)+"}"
		}
	}
	return f, missing, nil
}

var (
	unfitVariable   = pattern.New(`[^A-Za-z0-9]+`)
	unfitSecretName = pattern.New(`[^A-Za-z0-9._-]+`)
)

// VariableName returns the environment variable from which mcpx takes a secret if there is no keyring.
func VariableName(ask Ask) string {
	return strings.ToUpper(unfitVariable.ReplaceAllString(ask.Name, "_"))
}

// SecretName returns the name under which the keyring has a secret of the server called name.
func SecretName(name string, ask Ask) string {
	return unfitSecretName.ReplaceAllString(name+"."+ask.Name, "_")
}

// ShortName returns the part of a server's name that its publisher chose.
func ShortName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
