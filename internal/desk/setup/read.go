package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// Source is one file that may hold servers.
type Source struct {
	// Client is its name for people; empty for a file that the user named.
	Client string
	// ID is that of the client, or empty.
	ID string
	// File is where it lies.
	File string
	// Servers are in the order of the file.
	Servers []Found
	// Err is why the file cannot be read; nil also where there is no file.
	Err error

	exists bool
}

// Exists reports whether the file is there.
func (s Source) Exists() bool { return s.exists }

// Found is one server in a file of a client.
type Found struct {
	// Name is as the file has it.
	Name string
	// Self: it is mcpx.
	Self bool
	// Fault is why the entry cannot be served, or not by mcpx.
	Fault string
	// LeftOut are keys that mean nothing to mcpx.
	LeftOut []string
	// Needs is why the server will be unavailable until something is done.
	Needs string
	// Server is the entry as mcpx reads it.
	Server config.Server

	entry object
}

// Find reads the files of all clients, and those alone that are there.
func Find(s System, o config.Options) []Source {
	var sources []Source
	for _, c := range clients {
		files := []string{c.File(s)}
		if c.others != nil {
			files = append(files, c.others(s)...)
		}
		for _, file := range files {
			if source := readSource(c, origin{client: c.ID, file: file, reading: o}); source.exists {
				sources = append(sources, source)
			}
		}
	}
	return sources
}

// FindProject names the files of clients in the working folder. They may come
// with a cloned repository, so they are not read unasked.
func FindProject(s System) []string {
	var files []string
	for _, c := range clients {
		if c.project == "" {
			continue
		}
		file := filepath.Join(s.Dir, filepath.FromSlash(c.project))
		if exists(file) && file != c.File(s) && !slices.Contains(files, c.project) {
			files = append(files, c.project)
		}
	}
	return files
}

// ReadFile reads a file that the user named, of any client or of mcpx.
func ReadFile(s System, file string, o config.Options) Source {
	return readSource(Client{}, origin{file: file, project: projectOf(s, file), reading: o})
}

// projectOf is the folder of the project that a file of this name belongs to, in
// which a client starts its servers; empty: it is the user's own file.
func projectOf(s System, file string) string {
	for _, c := range clients {
		folder, ok := strings.CutSuffix(filepath.ToSlash(file), "/"+c.project)
		if ok && c.project != "" && folder != "" && !slices.Contains(c.places(s), file) {
			return filepath.FromSlash(folder)
		}
	}
	return ""
}

// origin is where servers are read from, and how.
type origin struct {
	client  string // its ID; empty for a file that the user named
	file    string
	project string // the folder that the servers are started in; empty: the user's own file
	reading config.Options
}

func readSource(c Client, from origin) Source {
	source := Source{Client: c.Name, ID: c.ID, File: from.file}
	data, existed, err := read(from.file)
	source.exists, source.Err = existed || err != nil, err
	if !existed {
		return source
	}
	if c.format.toml || c.ID == "" && strings.EqualFold(filepath.Ext(from.file), ".toml") {
		source.Servers, source.Err = from.tomlServers(data)
		return source
	}
	source.Servers, source.Err = from.jsonServers(data)
	return source
}

func (from origin) tomlServers(data []byte) ([]Found, error) {
	d, err := parseTOMLText(data)
	if err != nil {
		return nil, err
	}
	var found []Found
	table := d.table("mcp_servers")
	for _, name := range sortedKeys(table) {
		members, _ := table[name].(map[string]any)
		if members == nil {
			continue
		}
		var entry object
		for _, key := range sortedKeys(members) {
			value, err := marshal(members[key])
			if err != nil {
				return nil, err
			}
			entry = append(entry, field{key, json.RawMessage(value)})
		}
		if command := entry.get("command"); command != nil { // first, as people write it
			entry = append(object{{"command", command}}, entry.without("command")...)
		}
		found = append(found, from.translate(name, entry, ""))
	}
	return found, nil
}

// containers are the keys that lead to servers in the files of clients.
var containers = [][]string{
	{"mcpServers"},      // Claude, Cursor, Gemini, Windsurf and most others
	{"servers"},         // VS Code, mcp.json
	{"mcp", "servers"},  // VS Code, settings.json; opencode 2
	{"context_servers"}, // Zed
	{"mcp"},             // opencode
	{"mcp_servers"},     // the older mcpx
}

func (from origin) jsonServers(data []byte) ([]Found, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, keys := range containers {
		value := d.value(keys...)
		if value == nil || len(keys) == 1 && keys[0] == "mcp" && d.openCode2() {
			continue
		}
		found = append(found, from.serversIn(value, strings.Join(keys, "."))...)
	}
	// Claude Code keeps the servers of a project under the project's folder.
	if projects := d.objectAt("projects"); projects != nil {
		for _, m := range projects.Members {
			folder := m.Name.Value.(hujson.Literal).String()
			if value := d.value("projects", folder, "mcpServers"); value != nil {
				of := from
				of.project = folder
				found = append(found, of.serversIn(value, "mcpServers")...)
			}
		}
	}
	return found, nil
}

// serversIn reads the object, or the older array, that holds servers. at are the keys that
// lead to it.
func (from origin) serversIn(value *hujson.Value, at string) []Found {
	var found []Found
	dialect := at
	if from.client == "gemini" {
		dialect = from.client
	}
	for _, one := range entriesIn(value) {
		entry := fields(one.value)
		if entry == nil {
			continue // opencode has settings beside
		}
		if one.listed {
			entry = entry.without("name", "id")
		}
		found = append(found, from.translate(one.name, entry, dialect))
	}
	return found
}

// entryAt is where a server stands: in an object, or in a list, at an index.
type entryAt struct {
	name   string
	listed bool
	index  int
	value  *hujson.Value
}

// entriesIn are the entries of an object, or of a list, of servers.
func entriesIn(value *hujson.Value) (entries []entryAt) {
	switch v := value.Value.(type) {
	case *hujson.Object:
		for i, m := range v.Members {
			entries = append(entries, entryAt{m.Name.Value.(hujson.Literal).String(), false, i, &v.Members[i].Value})
		}
	case *hujson.Array:
		for i := range v.Elements {
			entry := fields(&v.Elements[i])
			entries = append(entries, entryAt{cmp.Or(entry.text("name"), entry.text("id")), true, i, &v.Elements[i]})
		}
	}
	return entries
}

// fields are the members of an object as raw JSON; nil for anything else.
func fields(v *hujson.Value) object {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	entry := object{}
	for i, m := range o.Members {
		entry = append(entry, field{m.Name.Value.(hujson.Literal).String(), raw(&o.Members[i].Value)})
	}
	return entry
}

// translate makes an entry of mcpx's config of one of a client.
func (from origin) translate(name string, entry object, dialect string) Found {
	f := Found{Name: name}
	f.entry, f.LeftOut = entry.ofMcpx(dialect)
	if dialect == "context_servers" && f.entry.get("command") == nil && f.entry.get("url") == nil {
		f.Fault = "is an extension of Zed, which alone can start it"
		return f
	}
	if from.project != "" {
		f.entry = rewrite(f.entry, workspaceFolder, strings.ReplaceAll(strings.Trim(string(quoted(from.project)), `"`), "$", "$$"))
	}
	if from.project != "" || filepath.IsAbs(from.file) {
		f.entry = f.entry.inFolder(from.project, filepath.Dir(from.file))
	}
	f.check(from.reading)
	return f
}

// check reads the entry as mcpx does. Values stay out of what is said.
func (f *Found) check(o config.Options) {
	text, err := marshal(object{{"mcpServers", object{{f.Name, f.entry}}}})
	if err != nil {
		f.Fault = err.Error()
		return
	}
	cfg, err := config.Parse("", text, o)
	name := f.Name
	if err != nil {
		// The name may be all that is wrong.
		name = safeName(f.Name)
		text, _ = marshal(object{{"mcpServers", object{{name, f.entry}}}})
		cfg, err = config.Parse("", text, o)
	}
	var faults *config.Faults
	switch {
	case errors.As(err, &faults):
		f.Fault = within(name, faults.List[0].String())
	case err != nil:
		f.Fault = err.Error()
	case len(cfg.Servers) == 0:
		f.Self = true
	default:
		f.Server = cfg.Servers[0]
		f.Needs = within(name, f.Server.Fault)
	}
}

// within drops the name of the server from the place of a fault.
func within(name, fault string) string {
	return strings.ReplaceAll(strings.ReplaceAll(fault, "mcpServers."+name+".", ""), "mcpServers."+name+": ", "")
}

var unfit = pattern.New(`[^A-Za-z0-9._-]`)

// safeName is a name that mcpx's config can have.
func safeName(name string) string {
	safe := unfit.ReplaceAllString(name, "_")
	safe = safe[:min(len(safe), 56)]
	switch {
	case strings.Trim(safe, "_") == "":
		return "server"
	case strings.EqualFold(safe, "mcpx"):
		return "mcpx_"
	}
	return safe
}

// definition is what two entries share that are the same server.
func (f *Found) definition() string {
	s := &f.Server
	text, _ := marshal([]any{s.Type, s.Command, append([]string{}, s.Args...), s.Env, s.Cwd, s.URL, s.Headers})
	return strings.ReplaceAll(string(text), "null", "{}")
}

// launchers are programs of which the first argument says what runs.
var launchers = []string{
	"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "npm", "npx.cmd", "uv", "bun", "deno", "node", "go", "python", "python3",
}

// Runs says in a few words what the server is, without what may be secret.
func (f *Found) Runs() string {
	s := &f.Server
	if s.Command == "" {
		host := ""
		if u, err := url.Parse(s.URL); err == nil {
			host = u.Host
		}
		return strings.TrimSpace(s.Type + " " + host)
	}
	words := []string{filepath.Base(strings.ReplaceAll(s.Command, `\`, "/"))}
	if !slices.Contains(launchers, strings.TrimSuffix(words[0], ".exe")) {
		return words[0] // its arguments may be anything
	}
	for _, arg := range s.Args {
		if !strings.HasPrefix(arg, "-") && !slices.Contains([]string{"run", "exec", "dlx", "tool", "x"}, arg) {
			if !strings.ContainsAny(arg, "=:") {
				words = append(words, arg)
			}
			break
		}
	}
	return strings.Join(words, " ")
}
