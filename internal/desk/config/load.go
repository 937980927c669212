package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/terminal"
)

// maxEnvFileBytes is the largest size, in bytes, of an envFile or of the file in a ${file:PATH}.
const maxEnvFileBytes = 1 << 20

// Load reads the config file at path. The error is an [*Error], a [*SyntaxError] or a [*Faults].
func Load(path string, o Options) (*Config, error) {
	data, existed, err := Read(path)
	if err != nil {
		return nil, err
	}
	if !existed {
		return nil, notFound(path)
	}
	return Parse(path, data, o)
}

// Read returns the text of the config file at path. If there is no file, existed is false and err is nil. Any error is an [*Error].
func Read(path string) (data []byte, existed bool, err error) {
	data, err = readRegular(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &Error{Text: "reading config " + path, Err: err, Advice: inFolder(path)}
	}
	return data, true, nil
}

// inFolder returns advice for a path that cannot be read. If the path is a folder that contains a likely config file, the advice
// suggests this file. Otherwise inFolder returns "".
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

// readRegular reads a file, which must have at most maximum bytes. It refuses pipes and devices, because reading one may never end.
func readRegular(path string, maximum int64) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, maximum+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > maximum {
		return nil, fmt.Errorf("is larger than %d MiB", maximum>>20)
	}
	return data, nil
}

// withoutPath removes the path from an error of package os, because the callers add the path themselves.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// Parse reads a config from data. The parameter path is the name of the file in messages, and relative paths of files in the
// config are relative to its folder. The error is an [*Error], a [*SyntaxError] or a [*Faults].
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
	files := make(map[string]bool)
	readFile := o.ReadFile
	o.ReadFile = func(path string) ([]byte, error) {
		files[path] = true
		return readFile(path)
	}
	cfg, err := parse(path, data, o)
	named := slices.Sorted(maps.Keys(files))
	if faults, ok := errors.AsType[*Faults](err); ok {
		faults.Referred = named
	}
	if cfg != nil {
		cfg.Referred = named
	}
	return cfg, err
}

// parse does the work of [Parse]. o.Getenv and o.ReadFile must not be nil.
func parse(path string, data []byte, o Options) (*Config, error) {
	root, err := decode(path, data)
	if err != nil {
		return nil, err
	}
	l := newLoader(path, o)
	l.readRoot(root)
	if len(l.faults) == 0 && len(l.wanted) > 0 { // look up the collected references, then read the file again with their values
		all := l.lookUp(l.needed())
		l = newLoader(path, o)
		l.answers, l.cfg.Commands = all, all.programs()
		l.readRoot(root)
	}
	if len(l.faults) == 0 {
		l.finish()
	}
	if len(l.faults) > 0 {
		sortFaults(l.faults)
		return nil, &Faults{File: path, List: l.faults}
	}
	return l.cfg, nil
}

func newLoader(path string, o Options) *loader {
	return &loader{
		o: o, cfg: defaults(path), defined: map[string]string{}, wanted: map[string][]wanted{},
		perPrincipal: map[string]*node{}, everyServer: serverDefaults(),
	}
}

// withoutMark removes the byte order mark with which some programs on Windows begin a file.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")) }

// decode parses the content of a config file, which may begin with a byte order mark. The error is a [*SyntaxError].
func decode(path string, data []byte) (*node, error) {
	data = withoutMark(data)
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

// loader has the state of reading one file.
type loader struct {
	o      Options
	cfg    *Config
	faults []Fault
	// defined maps the name of each server to the path where it is defined.
	defined map[string]string

	viewAt   *node // the value of the key view
	inGroups []groupServers
	authAt   *node // the value of the key auth
	// perPrincipal is for the servers whose key oauth.per is principal. For each of them, it has the place of that key in the file.
	// The keys of the map are the names of the servers in the file. Servers that are disabled or do not log in are left out.
	perPrincipal map[string]*node

	// wanted has references to the keyring and to commands, if [Options] has a function for them. The keys of the map are the names
	// of the enabled servers that contain the references; "" is for references outside of servers. answers has the values of the
	// references, and is nil while the file is read for the first time.
	wanted  map[string][]wanted
	answers answers

	// everyServer has the defaults for all servers, after the root keys have changed them.
	everyServer Server
	someServers bool // whether the file has a key that contains servers
	floodSaid   bool // whether the file has limits.principal.requests_per_second

	warnings []string
	// Each of these fields collects keys, and becomes one warning. otherClients has keys of other clients, old has keys of older
	// versions of mcpx, MCP-Dock and MCP-PROXY, and unknown has keys that mcpx does not know; all these keys have no effect.
	// unexpanded has keys whose values contain a ${...} in a form that mcpx does not know.
	otherClients, old, unknown, unexpanded ignored
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// finish does the work for which all keys must be read, and adds the warnings about ignored keys.
func (l *loader) finish() {
	l.safeNames()
	l.similarNames()
	l.finishViews()
	l.finishAuth()
	l.finishDial()
	l.finishLimits()
	if len(l.cfg.Files) > 0 && l.cfg.Auth != nil {
		l.warn("files: no files are open, because there is auth")
	}
	slices.SortFunc(l.cfg.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	if len(l.cfg.Servers) == 0 && l.cfg.Dial == nil {
		l.warn("no servers are defined")
	}
	for _, kind := range []struct {
		keys ignored
		text string
	}{
		{l.otherClients, "keys of other clients that mean nothing here, ignored"},
		{l.old, "keys of older systems that no longer mean anything, ignored"},
		{l.unknown, "unknown keys, ignored"},
		{l.unexpanded, "a ${...} that names no variable stays as it is"},
	} {
		if len(kind.keys.names) > 0 {
			l.warn("%s: %s", kind.text, kind.keys)
		}
	}
	l.cfg.Warnings = l.warnings
}

// ignored collects keys, in the form that messages show. For each key, places has the paths of the objects that contain the key.
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

// String returns at most 20 of the keys, in the order in which they were added. At most 5 places follow each key.
func (g ignored) String() string {
	const maximum = 20
	var b strings.Builder
	for i, name := range g.names {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == maximum {
			fmt.Fprintf(&b, "and %d more", len(g.names)-maximum)
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

// envPath is the environment variable that names the config file.
const envPath = "MCPX_CONFIG"

// localPath is the config file in the current folder. Unless the user names it, it is used only if stdin is a terminal: if an
// editor starts mcpx in a cloned repository, mcpx must not run the commands in a file of that repository.
const localPath = "config.json"

// Real returns the absolute path of a config file, without symbolic links. The daemon of a config and its statistics of saved
// tokens are found by this path, so it must be the same for all names of the file. If the file does not exist, Real resolves only
// the links of its folder.
func Real(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		return real
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil {
		return filepath.Join(folder, filepath.Base(absolute))
	}
	return absolute
}

// Find returns the path of the config file. It is the first of these: flag if that is not empty, $MCPX_CONFIG if that is not
// empty, mcpx/config.json in userConfigDir if it exists, or ./config.json if it exists and stdin is a terminal. userConfigDir
// is empty if the system has no such folder. If there is no file, or flag or $MCPX_CONFIG names one that does not exist, the
// error is an [*Error] with a hint.
func Find(flag string, getenv func(string) (string, bool), stdinTTY bool, userConfigDir string) (path string, err error) {
	if flag != "" {
		return flag, mustExist(flag)
	}
	if named, _ := getenv(envPath); named != "" {
		return named, mustExist(named)
	}
	user := ""
	if userConfigDir != "" {
		user = filepath.Join(userConfigDir, "mcpx", "config.json")
		if mustExist(user) == nil {
			return user, nil
		}
	}
	local := mustExist(localPath) == nil
	if stdinTTY && local {
		return localPath, nil
	}
	missing := notFound(user)
	missing.Advice = advice(user)
	if user == "" {
		missing.Text = "config file not found: there is no user configuration folder to look in"
		missing.Advice = advice("a file named with --config")
	}
	if local {
		missing.Advice += "; ./config.json is used only from a terminal or when --config names it"
	}
	return "", missing
}

// mustExist returns an error if path does not exist. Loading checks later whether it is a regular file.
func mustExist(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return notFound(path)
	}
	return nil
}

func notFound(path string) *Error {
	missing := &Error{Text: "config file not found: " + path, Advice: advice(path, "--config", path)}
	if target, err := atomicfile.Target(path); err == nil && target != path {
		missing.Text += " is a symbolic link to " + target + ", where no file is"
	}
	return missing
}

// advice tells the user how to make a config at target. flags are the options that make the command mcpx init write the config
// there.
func advice(target string, flags ...string) string {
	return `run "mcpx ` + terminal.CommandLine(append([]string{"init"}, flags...)...) + `" to make one from the files of your MCP clients, "mcpx demo" to try mcpx without a config, or copy config.example.json to ` + target
}
