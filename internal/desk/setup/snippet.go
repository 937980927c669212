package setup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// namedEntry matches the beginning of a JSON member ("name": ...) without braces around it. Documentation often shows
// servers in this form.
var namedEntry = pattern.New(`^"[^"]*"\s*:`)

// IsSnippet reports whether an argument is JSON with a server, as opposed to a program or a URL.
func IsSnippet(text string) bool { return strings.HasPrefix(text, "{") || namedEntry.MatchString(text) }

// ReadSnippet reads a server from JSON, as a user copies it from documentation: only the entry, the entry with its name, or the
// whole file of a client. If there are several servers, it returns the server called name. Its errors contain no values of the
// JSON, because values may be secret.
func ReadSnippet(s System, name, text string, o config.Options) (*Found, error) {
	found, err := jsonSnippet(s, name, text, o)
	if err != nil {
		return nil, err
	}
	return oneOf(found, name)
}

// ReadSnippets returns all servers in a text that a user has copied from documentation. The text is JSON (see [ReadSnippet]), or the
// TOML or YAML file of a client. An entry that has no name gets the name in the parameter name.
func ReadSnippets(s System, name, text string, o config.Options) (found []Found, err error) {
	from := origin{file: filepath.Join(s.Dir, "snippet"), reading: o}
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "[mcp_servers"):
		from.file += ".toml"
	case strings.HasPrefix(text, "extensions:") || strings.Contains(text, "\nextensions:"):
		from.file += ".yaml"
	default:
		found, err = jsonSnippet(s, name, text, o)
	}
	if from.file != filepath.Join(s.Dir, "snippet") {
		source := readSourceText(Client{}, from, []byte(text))
		found, err = source.Servers, source.Err
	}
	if err == nil && len(found) == 0 {
		err = errors.New("the text has no server: no command and no url")
	}
	return found, err
}

// ToAdd returns the entry of the server for mcpx's config, for [AddServer].
func (f *Found) ToAdd() any { return f.withShare() }

func jsonSnippet(s System, name, text string, o config.Options) ([]Found, error) {
	wrapped := namedEntry.MatchString(text)
	if wrapped {
		text = "{" + text + "}"
	}
	d, err := parseJSONText([]byte(text))
	if invalid, ok := errors.AsType[*syntaxError](err); ok && !wrapped {
		return nil, fmt.Errorf("%s: the text is not valid JSON", invalid.place)
	}
	if err != nil {
		return nil, errors.New("the text is not valid JSON")
	}
	from := origin{file: filepath.Join(s.Dir, "snippet.json"), reading: o}
	found, err := from.jsonServers([]byte(text))
	if err != nil {
		return nil, err
	}
	if entry := fields(&d.root); isEntry(entry) {
		dialect := ""
		if entry.get("environment") != nil {
			dialect = "mcp"
		}
		found = []Found{from.translate(name, entry, dialect)}
	} else if len(found) == 0 {
		found = from.serversIn(&d.root, []string{"mcpServers"})
		found = slices.DeleteFunc(found, func(f Found) bool { return !isEntry(f.entry) })
	}
	return found, nil
}

// isEntry reports whether an object is the entry of a server: it has a command or a URL.
func isEntry(entry object) bool {
	return slices.ContainsFunc(entry, func(f field) bool {
		return slices.Contains([]string{"command", "url", "urls", "httpUrl", "serverUrl"}, f.key)
	})
}

// oneOf returns the server called name. If there is only one server, oneOf returns that one, whatever its name is.
func oneOf(servers []Found, name string) (*Found, error) {
	at := slices.IndexFunc(servers, func(f Found) bool { return f.Name == name })
	switch {
	case len(servers) == 0:
		return nil, errors.New("the JSON has no server: no command and no url")
	case at < 0 && len(servers) > 1:
		names := make([]string, len(servers))
		for i := range servers {
			names[i] = servers[i].Name
		}
		return nil, fmt.Errorf("the JSON has %d servers: %s; give one of these names, or take all from a file with mcpx init --from FILE",
			len(servers), strings.Join(names, ", "))
	}
	f := &servers[max(at, 0)]
	switch {
	case f.Self:
		return nil, errors.New("the entry is mcpx itself")
	case f.Fault != "":
		return nil, errors.New(f.Fault)
	}
	return f, nil
}
