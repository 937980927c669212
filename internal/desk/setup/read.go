package setup

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/share"
)

// Source is a file in which servers may be configured.
type Source struct {
	// Client is the client's display name, and ID is the client's ID. Both are empty for a file that the user gave.
	Client, ID string
	File       string
	// Servers are the servers in the file, in the order of the file.
	Servers []Found
	// NotTaken are the keys outside of servers that ask mcpx for a protection. Only the servers of a Source are taken, so the user
	// must know about these keys.
	NotTaken []string
	// Exists is true if the file exists, even if it cannot be read.
	Exists bool
	// Err says why the file cannot be read. It is nil if the file does not exist.
	Err error
}

// Found is the entry of a server in a file, and what mcpx makes of it.
type Found struct {
	Name string // the name in the file
	// Self is true if the entry starts mcpx itself.
	Self bool
	// Fault says why mcpx cannot serve this entry; empty if it can.
	Fault string
	// LeftOut are the keys of the entry that mcpx does not support.
	LeftOut []string
	// Needs says what the user must do before the server can start; empty if nothing.
	Needs string
	// Server is the entry as mcpx's config parses it.
	Server config.Server

	entry object
	path  []string // the keys that lead to the entry in the file, the outermost first; nil if mcpx cannot remove the entry
}

// Uses reports whether the entry starts mcpx with the config file at this path. Uses finds the path only if the entry contains it in
// the form in which [Backups.Connect] writes it.
func (f *Found) Uses(file string) bool {
	text, _ := marshal(f.entry)
	return f.Self && bytes.Contains(text, quoted(file))
}

// Find reads the config files of all known clients, and returns the files that exist.
func Find(s System, o config.Options) []Source {
	var sources []Source
	for _, client := range clients {
		for _, c := range append([]Client{client}, client.Others...) {
			if source := readSource(c, origin{client: c.ID, file: c.File(s), reading: o}); source.Exists {
				sources = append(sources, source)
			}
		}
	}
	return sources
}

// FindProject returns the paths of clients' project files in the working folder. It does not read them, because they may belong to
// a cloned repository that the user does not trust.
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

// ReadConfig reads mcpx's own config. Unlike [ReadFile], it never takes the file for the project file of a client, even if the file
// has such a name. So the servers do not run in the folder of the file.
func ReadConfig(file string, o config.Options) Source {
	return readSource(Client{}, origin{file: file, reading: o})
}

// ReadFile reads a file that the user gave, which may be a file of any client or a config of mcpx.
func ReadFile(s System, file string, o config.Options) Source {
	return readSource(Client{}, origin{file: file, project: projectOf(s, file), reading: o})
}

// projectOf returns the folder of the project to which a client's file belongs. It is empty if the file does not belong to
// a project. Clients start the servers of a project in the project's folder.
func projectOf(s System, file string) string {
	longest, project := 0, ""
	for _, c := range clients {
		if c.places != nil && slices.Contains(c.places(s), file) {
			return ""
		}
		// A path may end with the project files of two clients, such as .warp/.mcp.json and .mcp.json. Then the longer one is right.
		folder, ok := strings.CutSuffix(filepath.ToSlash(file), "/"+c.project)
		if ok && len(c.project) > longest && folder != "" {
			longest, project = len(c.project), filepath.FromSlash(folder)
		}
	}
	return project
}

// origin says where servers are read from: from which file, of which client, and with which options.
type origin struct {
	client  string // the ID of the client; empty for a snippet, and in [ReadFile], whose file may be of any client
	file    string
	project string // the folder of the project to which the file belongs, or ""
	reading config.Options
}

func readSource(c Client, from origin) Source {
	source := Source{Client: c.Name, ID: c.ID, File: from.file}
	data, existed, err := Read(from.file)
	source.Exists, source.Err = existed || err != nil, err
	if !existed {
		return source
	}
	source.NotTaken = config.Protections(from.file, data)
	servers := readSourceText(c, from, data)
	source.Servers, source.Err = servers.Servers, servers.Err
	return source
}

// readSourceText reads the servers in the text of a file. If the file is of no known client, its extension tells the language.
func readSourceText(c Client, from origin, data []byte) (source Source) {
	f := c.format
	if c.ID == "" { // a file that the user gave, which may be of any client
		switch strings.ToLower(filepath.Ext(from.file)) {
		case ".toml":
			f = format{language: tomlLanguage}
		case ".yaml", ".yml":
			f = format{language: yamlLanguage, path: []string{"extensions"}}
		}
	}
	if f.language == jsonLanguage {
		source.Servers, source.Err = from.jsonServers(data)
		if why := config.Foreign(data); why != "" && c.ID == "" && len(source.Servers) == 0 {
			source.Err = errors.New(why)
		}
		return source
	}
	var d edited
	if d, source.Err = parse(f, data); source.Err == nil {
		source.Servers = d.found(from, f.path)
	}
	return source
}

func (from origin) tomlServers(d *tomlText) (found []Found) {
	table := d.table("mcp_servers")
	for _, name := range sortedKeys(table) {
		members, _ := table[name].(map[string]any)
		if members == nil {
			continue
		}
		var entry object
		if command := members["command"]; command != nil { // usually the first key
			entry = object{{"command", command}}
		}
		for _, key := range sortedKeys(members) {
			entry = entry.withKey(key, members[key])
		}
		f := from.translate(name, entry, "")
		f.path = []string{"mcp_servers", name}
		found = append(found, f)
	}
	return found
}

// containers are the paths of the objects with servers in the files of various clients.
var containers = [][]string{
	{"mcpServers"},      // Claude, Cursor, Gemini, Windsurf and most others
	{"servers"},         // VS Code, mcp.json
	{"mcp", "servers"},  // VS Code, settings.json; opencode 2
	{"context_servers"}, // Zed
	{"mcp"},             // opencode
	{"amp.mcpServers"},  // Amp
	{"mcp_servers"},     // an older version of mcpx
}

func (from origin) jsonServers(data []byte) ([]Found, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, keys := range containers {
		if len(keys) == 1 && keys[0] == "mcp" && d.openCode2() {
			continue
		}
		found = append(found, from.serversIn(d.value(keys...), keys)...)
	}
	return append(found, from.projectServers(d)...), nil
}

// projectServers reads the servers of all projects from a file of Claude Code. Claude Code has them in the user's file, under a key
// for each project's folder.
func (from origin) projectServers(d *jsonText) (found []Found) {
	projects := d.objectAt("projects")
	if projects == nil {
		return nil
	}
	last := make(map[string]int) // by the project's folder; some users have thousands, so none is searched for
	for i := range projects.Members {
		last[nameOf(&projects.Members[i])] = i
	}
	for i := range projects.Members {
		of := from
		if of.project = nameOf(&projects.Members[i]); last[of.project] != i {
			continue // the key is there twice
		}
		servers := child(&projects.Members[i].Value, "mcpServers")
		found = append(found, of.serversIn(servers, []string{"projects", of.project, "mcpServers"})...)
	}
	return found
}

// serversIn reads the servers in value, which is an object or, in older files, an array. value may be nil. path has the keys that lead
// to value in the file.
func (from origin) serversIn(value *hujson.Value, path []string) []Found {
	var found []Found
	dialect := strings.Join(path, ".")
	if from.client == "gemini" || from.client == "qwen" { // Qwen Code began as a copy of Gemini CLI
		dialect = "gemini"
	}
	for _, one := range entriesIn(value) {
		entry := fields(one.value)
		switch {
		case entry == nil: // a setting of opencode, not a server
			continue
		case !one.listed && child(value, one.key) != one.value: // the key is there twice, and clients use the last one
			continue
		case one.listed:
			entry = entry.without("name", "id")
		}
		f := from.translate(one.name, entry, dialect)
		if !one.listed { // only older files have arrays, and mcpx removes no servers from them
			f.path = append(slices.Clip(path), one.key)
		}
		found = append(found, f)
	}
	return found
}

// entryAt is the entry of a server and its position in an object or an array.
type entryAt struct {
	name   string
	key    string // the server's key in the object, or its index in the array
	listed bool   // the entry is in an array
	value  *hujson.Value
}

// entriesIn returns the server entries in an object or an array. container may be nil.
func entriesIn(container *hujson.Value) (entries []entryAt) {
	if container == nil {
		return nil
	}
	switch v := container.Value.(type) {
	case *hujson.Object:
		for i := range v.Members {
			name := nameOf(&v.Members[i])
			entries = append(entries, entryAt{name, name, false, &v.Members[i].Value})
		}
	case *hujson.Array:
		for i := range v.Elements {
			entry := fields(&v.Elements[i])
			entries = append(entries, entryAt{cmp.Or(entry.text("name"), entry.text("id")), strconv.Itoa(i), true, &v.Elements[i]})
		}
	}
	return entries
}

// fields returns the members of an object with their values as raw JSON. It returns nil if v is not an object.
func fields(v *hujson.Value) object {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	entry := object{}
	for i := range o.Members {
		entry = append(entry, field{nameOf(&o.Members[i]), raw(&o.Members[i].Value)})
	}
	return entry
}

// translate converts a client's entry to an entry of mcpx's config. dialect tells the clients apart. Usually it has the keys that lead
// to the servers in the client's file, joined by dots, such as mcp.servers.
func (from origin) translate(name string, entry object, dialect string) Found {
	f := Found{Name: name}
	f.entry, f.LeftOut = entry.ofMcpx(dialect)
	if f.entry.get("command") == nil && f.entry.get("url") == nil {
		f.Fault = map[string]string{
			"context_servers": "is an extension of Zed; only Zed can start it",
			"extensions":      "is a part of Goose; only Goose can start it",
		}[dialect]
		if f.Fault != "" {
			return f
		}
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

// check parses the entry as a part of mcpx's config, and sets the fields Server, Self, Fault and Needs of f. The texts in them contain
// no values of the entry, which may be secret.
func (f *Found) check(o config.Options) {
	text, err := marshal(object{{"mcpServers", object{{f.Name, f.entry}}}})
	if err != nil {
		f.Fault = err.Error()
		return
	}
	cfg, err := config.Parse("", text, o)
	name := f.Name
	if err != nil {
		// Perhaps only the server's name is invalid. So the entry is parsed again under a valid name.
		name = safeName(f.Name)
		text, _ = marshal(object{{"mcpServers", object{{name, f.entry}}}})
		cfg, err = config.Parse("", text, o)
	}
	var faults *config.Faults
	switch {
	case errors.As(err, &faults):
		f.Fault = shortFault(name, faults.List[0].String())
	case err != nil:
		f.Fault = err.Error()
	case len(cfg.Servers) == 0:
		f.Self = true
	default:
		f.Server = cfg.Servers[0]
		f.Needs = shortFault(name, f.Server.Fault)
	}
}

// share returns the value that mcpx adds to the entry of the server as the key share. The key says which sessions can use the same
// process; mcpx knows this only for some packages. share returns "" if the entry has the key already, if the server is remote, or if
// sessions do not share the server.
func (f *Found) share() conf.Share {
	found := share.Of(&f.Server)
	if found.Set || f.Server.Type != config.Stdio || found.Share == conf.ShareSession {
		return ""
	}
	return found.Share
}

// withShare returns the entry for a config of mcpx, with the key share if that is needed.
func (f *Found) withShare() object {
	if share := f.share(); share != "" {
		return f.entry.withKey("share", share)
	}
	return f.entry
}

// shortFault returns an error message about the entry of the server called name, without the path mcpServers.NAME.
func shortFault(name, fault string) string {
	return strings.ReplaceAll(strings.ReplaceAll(fault, "mcpServers."+name+".", ""), "mcpServers."+name+": ", "")
}

var unfit = pattern.New(`[^A-Za-z0-9._-]`)

// safeName converts a name to one that mcpx's config allows. Different names may become the same.
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

// definition returns a text with all that defines the server, such as its command. Two entries define the same server if these
// texts are equal. The filter of the server's tools is a part of the text, because one client may hide tools that another client
// shows.
func (f *Found) definition() string { return f.definitionWith(f.Server.Tools) }

// replaces returns the definitions of clients' entries that f, a server of the config, can replace: the definition of f, and the
// same one without a filter of tools. So f may also replace an entry whose client shows more tools, because the user has decided to
// hide them.
func (f *Found) replaces() []string {
	return []string{f.definition(), f.definitionWith(config.ToolFilter{})}
}

func (f *Found) definitionWith(tools config.ToolFilter) string {
	s := &f.Server
	if slices.Contains(tools.Allow, "*") {
		tools.Allow = nil // "*" means all tools, and some clients always write it
	}
	text, _ := marshal([]any{s.Type, s.Command, append([]string{}, s.Args...), s.Env, s.Cwd, s.URL, s.Headers,
		tools.Allow, append([]string{}, tools.Deny...)})
	return strings.ReplaceAll(string(text), "null", "{}")
}

// launchers are programs that run another program. The name of that program is the first argument that is not an option, not the
// value of an option, and not a subcommand such as run.
var launchers = []string{
	"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "npm", "npx.cmd", "uv", "bun", "deno", "node", "go", "python", "python3",
}

// withValue are options of launchers that take the next argument as their value.
var withValue = []string{"--with", "--from", "--python", "-p", "--package", "--index", "--index-url", "--directory", "--project", "--env-file"}

// Runs describes in a few words what the server runs. It leaves out arguments that may be secret.
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
		return words[0] // only the program: its arguments may be secret
	}
	for i, arg := range s.Args {
		switch {
		case strings.HasPrefix(arg, "-") || slices.Contains([]string{"run", "exec", "dlx", "tool", "x"}, arg):
			continue
		case i > 0 && slices.Contains(withValue, s.Args[i-1]):
			continue
		}
		if !strings.ContainsAny(arg, "=:") && !slices.Contains(s.Credentials, arg) {
			words = append(words, arg)
		}
		break
	}
	return strings.Join(words, " ")
}
