package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEnvFileBytes bounds one envFile.
const maxEnvFileBytes = 1 << 20

// Load reads the config file at path. err is [*Error], [*SyntaxError] or
// [*Faults].
func Load(path string, o Options) (*Config, error) {
	data, err := readRegular(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(path)
	}
	if err != nil {
		return nil, &Error{Text: "reading config " + path, Err: err, Advice: inFolder(path)}
	}
	return Parse(path, data, o)
}

// inFolder says which file in a folder may be meant.
func inFolder(path string) string {
	for _, name := range []string{"config.json", "mcp.json", ".mcp.json", "claude_desktop_config.json", "settings.json"} {
		if file := filepath.Join(path, name); exists(file) {
			return "did you mean " + file + "?"
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readRegular reads a file, but no pipe or device, which may never end.
func readRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	switch {
	case info.IsDir():
		return nil, errors.New("is a folder, not a file")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("is larger than %d MiB", most>>20)
	}
	return data, nil
}

// withoutPath drops the path from an error of package os; the caller names it.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// Parse reads the text of a config. path is for messages, and relative names of
// env files are looked for beside it. data is not kept. err is [*Error],
// [*SyntaxError] or [*Faults].
func Parse(path string, data []byte, o Options) (*Config, error) {
	if len(data) > maxFileBytes {
		return nil, &Error{Text: "reading config " + path, Err: fmt.Errorf("is larger than %d MiB", maxFileBytes>>20)}
	}
	if o.Getenv == nil {
		o.Getenv = func(string) (string, bool) { return "", false }
	}
	if o.ReadFile == nil {
		o.ReadFile = func(path string) ([]byte, error) { return readRegular(path, maxEnvFileBytes) }
	}
	root, err := decode(path, data)
	if err != nil {
		return nil, err
	}
	l := newLoader(path, o)
	l.readRoot(root)
	if len(l.faults) == 0 && len(l.wanted) > 0 { // in a second reading each value stands where it belongs
		all := l.lookUp(l.needed())
		l = newLoader(path, o)
		l.answers, l.cfg.Commands = all, all.programs()
		l.readRoot(root)
	}
	if len(l.faults) > 0 {
		sortFaults(l.faults)
		return nil, &Faults{File: path, List: l.faults}
	}
	l.finish()
	if len(l.faults) > 0 {
		return nil, &Faults{File: path, List: l.faults}
	}
	return l.cfg, nil
}

func newLoader(path string, o Options) *loader {
	return &loader{
		o: o, cfg: defaults(path), defined: map[string]string{}, wanted: map[string][]wanted{},
		everyServer: serverDefaults(),
	}
}

// decode reads the JSON; it tolerates a byte order mark.
func decode(path string, data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	syntax := func(offset int, text string) error {
		line, column := position(data, offset)
		return &SyntaxError{File: path, Line: line, Column: column, Text: text}
	}
	if bytes.HasPrefix(data, []byte("\xFF\xFE")) || bytes.HasPrefix(data, []byte("\xFE\xFF")) {
		return nil, syntax(0, "the file is UTF-16, save it as UTF-8")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, syntax(i, "the file is not UTF-8")
		}
		i += size
	}
	root, err := parseJSON(data)
	if at, ok := errors.AsType[*syntaxError](err); ok {
		if other := otherLanguage(data); other != "" {
			return nil, syntax(0, other)
		}
		return nil, syntax(at.offset, at.text)
	}
	return root, err
}

// loader is the state of reading one file.
type loader struct {
	o      Options
	cfg    *Config
	faults []Fault
	// defined says where each server name was defined.
	defined map[string]string

	// viewAt is where the key view stands, and inGroups what the groups say of servers.
	viewAt       place
	inGroups     []groupServers
	authAt       place // where the key auth stands
	authServerAt place // where auth.front stands

	// wanted are the references of servers in use to values elsewhere, by server; empty: of
	// none. answers has what they
	// gave; it is nil in the first reading.
	wanted  map[string][]wanted
	answers answers

	// everyServer is what a server begins with: the defaults, and what the root says for all.
	everyServer Server
	someServers bool // a key that holds servers was there
	floodSaid   bool // limits.principal.requests_per_second was there

	warnings []string
	// Keys without effect; one warning for each kind.
	otherClients, old, unknown, strange ignored
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// finish sorts the servers and turns what was ignored into warnings.
func (l *loader) finish() {
	l.safeNames()
	l.similarNames()
	l.finishViews()
	l.finishAuth()
	l.finishAuthServer()
	l.finishLimits()
	l.servedRights()
	slices.SortFunc(l.cfg.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	if len(l.cfg.Servers) == 0 {
		l.warn("no servers are defined")
	}
	for _, kind := range []struct {
		keys ignored
		text string
	}{
		{l.otherClients, "keys of other clients that mean nothing here, ignored"},
		{l.old, "keys of older systems that mean nothing any more, ignored"},
		{l.unknown, "unknown keys, ignored"},
		{l.strange, "a ${...} that names no variable stays as it is"},
	} {
		if len(kind.keys.names) > 0 {
			l.warn("%s: %s", kind.text, kind.keys)
		}
	}
	l.cfg.Warnings = l.warnings
}

// ignored collects keys, in the form that a message shows, and where they stand.
type ignored struct {
	names  []string
	places map[string][]string
}

func (g *ignored) add(key, place string) {
	if g.places == nil {
		g.places = map[string][]string{}
	}
	if g.places[key] == nil {
		g.names = append(g.names, key)
	}
	g.places[key] = append(g.places[key], place)
}

// String lists the keys in the order of the file, each with its places.
func (g ignored) String() string {
	const most = 20
	var b strings.Builder
	for i, name := range g.names {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "and %d more", len(g.names)-most)
			break
		}
		b.WriteString(name)
		if places := g.places[name]; places[0] != "" {
			shown := places[:min(len(places), 5)]
			fmt.Fprintf(&b, " (%s", strings.Join(shown, ", "))
			if len(places) > len(shown) {
				fmt.Fprintf(&b, " and %d more", len(places)-len(shown))
			}
			b.WriteString(")")
		}
	}
	return b.String()
}
