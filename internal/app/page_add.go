package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/published"
	"mcpx/internal/desk/secret"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
)

// wanted is what a viewer wants to add: a command, a URL, a snippet (JSON, TOML or YAML), or a server of the MCP registry (a
// public list of servers).
type wanted struct {
	Name     string
	Command  string
	Words    []string
	Env      map[string]string
	URL      string
	Type     string
	Headers  map[string]string
	Snippet  string
	Registry string
	Way      int
	Set      map[string]string
	// Names says which servers to add, and under which names. Each key is the name of a server in the preview. Its value is the
	// name to use; if that is empty, the server keeps the name in the preview. A nil map means all servers, under their names
	// in the preview.
	Names map[string]string
}

// draft is a server that the viewer has entered and may add. entry is nil if mcpx cannot add it; then notes say why.
type draft struct {
	name  string
	entry any // a [setup.Entry] or raw JSON
	notes []string
}

// drafts are what the method add would store: servers in the config, and secrets in the keyring.
type drafts struct {
	servers []draft
	secrets []setup.Secret
	unset   []string // variables that must be set where mcpx runs
}

// refusedDraft says why mcpx cannot make a draft: what the viewer has entered is wrong or incomplete, or the registry does not
// answer. missing names the values that the viewer has not entered.
type refusedDraft struct {
	code, text string
	missing    []string
}

func (e *refusedDraft) Error() string { return e.text }

// draft makes the config entries for what the viewer has entered. It stores and starts nothing. References such as ${NAME} stay as they
// are.
func (p *pageWork) draft(ctx context.Context, in *wanted) (*drafts, error) {
	file := p.app.source.Load()
	if file == nil {
		return nil, errNoFile
	}
	switch {
	case in.Registry != "":
		return p.fromRegistry(ctx, in)
	case strings.TrimSpace(in.Snippet) != "":
		return fromSnippet(in, file.Reading)
	case in.URL != "":
		u, err := url.Parse(in.URL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(u.Scheme)) {
			return nil, &refusedDraft{code: "bad_request", text: "a remote server has a URL that begins with https://"}
		}
		entry := setup.Entry{Type: in.Type, URL: in.URL, Headers: in.Headers}
		return &drafts{servers: []draft{{name: cmp.Or(in.Name, hostName(u)), entry: entry}}}, nil
	}
	words := in.Words
	if len(words) == 0 {
		words = config.ShellWords(in.Command)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, &refusedDraft{code: "bad_request", text: "there is no command, URL or snippet"}
	}
	entry := setup.Entry{Command: words[0], Args: words[1:], Env: in.Env}.WithShare(file.Reading)
	one := draft{name: cmp.Or(in.Name, packageName(words)), entry: entry}
	one.warn(entry.Command)
	return &drafts{servers: []draft{one}}, nil
}

// warn adds a note to the draft if the program is not on the PATH of mcpx. It does not check a program whose name has a
// reference such as ${NAME}.
func (d *draft) warn(program string) {
	if program == "" || strings.Contains(program, "${") {
		return
	}
	if _, err := exec.LookPath(program); err != nil {
		d.notes = append(d.notes, sanitize.Line(program, 100)+" is not on the PATH of mcpx; install it first")
	}
}

// hostName suggests a name for a remote server: a part of its host's name, or else "server", as for an IP address.
func hostName(u *url.URL) string {
	parts := strings.Split(u.Hostname(), ".")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		return slices.Contains([]string{"mcp", "api", "www", "server"}, part)
	})
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return "server"
	}
	if len(parts) > 1 {
		return parts[len(parts)-2]
	}
	return cmp.Or(strings.Join(parts, ""), "server")
}

// packageName suggests a name for a server with this command: the name of the program or, for npx, uvx and the like, of the
// package that it runs. It leaves out a version, and parts such as mcp-server-.
func packageName(words []string) string {
	name := words[0]
	if slices.Contains([]string{"npx", "pnpx", "bunx", "uvx"}, path.Base(name)) {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") {
				name = word
				break
			}
		}
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name, _, _ = strings.Cut(name, "@")
	for _, part := range []string{"mcp-server-", "server-", "mcp-"} {
		name = strings.TrimPrefix(name, part)
	}
	for _, part := range []string{".exe", "-mcp-server", "-mcp"} {
		name = strings.TrimSuffix(name, part)
	}
	return cmp.Or(name, "server")
}

// fromSnippet reads the servers in text that the viewer has copied, for example from a README or from a client's config file.
// reading has the options for reading a config.
func fromSnippet(in *wanted, reading config.Options) (*drafts, error) {
	folder, err := os.UserHomeDir()
	if err != nil {
		folder = "/"
	}
	found, err := setup.ReadSnippets(setup.Here(reading.Getenv, folder), in.Name, in.Snippet, reading)
	if err != nil {
		return nil, &refusedDraft{code: "bad_request", text: err.Error()}
	}
	out := &drafts{}
	for i := range found {
		f := &found[i]
		one := draft{name: f.Name, entry: f.ToAdd()}
		if in.Name != "" && len(found) == 1 {
			one.name = in.Name
		}
		if f.Fault != "" || f.Self {
			one.entry = nil
			one.notes = append(one.notes, cmp.Or(f.Fault, "it is mcpx itself"))
		}
		if len(f.LeftOut) > 0 {
			one.notes = append(one.notes, "left out, as mcpx has nothing like it: "+strings.Join(f.LeftOut, ", "))
		}
		if f.Needs != "" {
			one.notes = append(one.notes, f.Needs)
		}
		one.warn(f.Server.Command)
		out.servers = append(out.servers, one)
	}
	return out, nil
}

// registry returns the MCP registry that the config names, or else the default one.
func (p *pageWork) registry() published.Registry {
	return published.Registry{URL: cmp.Or(p.app.current.Load().config.Registry, config.DefaultRegistry)}
}

// fromRegistry makes the entry for a server of the registry. Secrets go to the keyring; without a keyring, the entry refers to
// environment variables.
func (p *pageWork) fromRegistry(ctx context.Context, in *wanted) (*drafts, error) {
	server, err := p.registry().Latest(ctx, in.Registry)
	if errors.Is(err, published.ErrNoServer) {
		return nil, &refusedDraft{code: "unknown_server", text: "the registry lists no such server"}
	} else if err != nil {
		return nil, &refusedDraft{code: "offline", text: sanitize.Line(err.Error(), 400)}
	}
	ways, _ := server.Ways()
	if in.Way < 0 || in.Way >= len(ways) {
		return nil, &refusedDraft{code: "bad_request", text: "the server has no such way to run"}
	}
	name := cmp.Or(in.Name, published.ShortName(server.Name))
	filled, missing, err := ways[in.Way].Fill(name, in.Set, Secrets().Works(ctx) == nil)
	switch {
	case err != nil:
		return nil, &refusedDraft{code: "bad_request", text: sanitize.Line(err.Error(), 400)}
	case len(missing) > 0:
		text := "values are missing: " + sanitize.Line(strings.Join(missing, ", "), 400)
		return nil, &refusedDraft{code: "missing_values", text: text, missing: missing}
	}
	entry, err := ways[in.Way].Entry(filled.Given)
	if err != nil {
		return nil, &refusedDraft{code: "bad_request", text: sanitize.Line(err.Error(), 400)}
	}
	one := draft{name: name, entry: entry.WithShare(p.app.source.Load().Reading)}
	if server.Deprecated != "" {
		one.notes = append(one.notes, server.Deprecated)
	}
	one.warn(entry.Command)
	return &drafts{[]draft{one}, filled.Secrets, filled.Unset}, nil
}

// shownDraft is a draft as the page shows it. Entry, Secret and Executes are as in [setup.Shown]. Runs is the command line that
// would run. Taken means that the config has a server of this name.
type shownDraft struct {
	Name     string          `json:"name"`
	Entry    json.RawMessage `json:"entry,omitempty"` // without an entry, the server cannot be added
	Secret   []string        `json:"secret"`
	Runs     string          `json:"runs"`
	URL      string          `json:"url"`
	Executes []string        `json:"executes"`
	Taken    bool            `json:"taken"`
	Notes    []string        `json:"notes"`
}

// preview responds with the config entries that the method add would write, and with the commands and programs that would then run.
func (p *pageWork) preview(w http.ResponseWriter, r *http.Request) {
	var in wanted
	if !body(w, r, &in) {
		return
	}
	all, err := p.draft(r.Context(), &in)
	if err != nil {
		refuseDraft(w, err)
		return
	}
	data, _, err := config.Read(p.app.source.Load().Path)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	have, out := setup.ServerNames(data), []shownDraft{}
	for _, one := range all.servers {
		shown := shownDraft{
			Name: one.name, Taken: slices.Contains(have, one.name), Notes: orEmpty(one.notes), Secret: []string{}, Executes: []string{},
		}
		if one.entry != nil {
			if err := shown.fill(one.entry); err != nil {
				refuse(w, http.StatusBadRequest, err)
				return
			}
		}
		out = append(out, shown)
	}
	keyring := make([]string, len(all.secrets))
	for i, one := range all.secrets {
		keyring[i] = one.Name
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"servers": out, "keyring": keyring, "unset": orEmpty(all.unset)})
}

// fill adds the parts of an entry that a person may see.
func (d *shownDraft) fill(entry any) error {
	shown, err := setup.ShowEntry(entry)
	if err != nil {
		return err
	}
	d.Entry, d.Secret, d.Executes = shown.Entry, orEmpty(shown.Secret), orEmpty(shown.Executes)
	var of struct {
		Command string
		Args    []string
		URL     string
	}
	// The entry may come from the config of another client, and have values of other types. These are left out.
	_ = json.Unmarshal(shown.Entry, &of)
	d.URL = of.URL
	if of.Command != "" {
		words := []string{of.Command}
		for _, arg := range of.Args {
			if arg == "" || strings.ContainsAny(arg, " \t\"'$`;|&<>(){}*?\\") {
				arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
			}
			words = append(words, arg)
		}
		d.Runs = sanitize.Line(strings.Join(words, " "), 2000)
	}
	return nil
}

func refuseDraft(w http.ResponseWriter, err error) {
	var refused *refusedDraft
	if !errors.As(err, &refused) {
		refuse(w, http.StatusConflict, err)
		return
	}
	status := map[string]int{
		"missing_values": http.StatusUnprocessableEntity, "offline": http.StatusBadGateway, "unknown_server": http.StatusNotFound,
	}[refused.code]
	httpd.WriteJSON(w, cmp.Or(status, http.StatusBadRequest), map[string]any{
		"error": refused.text, "code": refused.code, "missing": refused.missing,
	})
}

// add writes the servers that the viewer has chosen into the config: either all of them, or none after an error. Servers of a
// snippet that mcpx cannot use (see draft) are left out beforehand. The config takes effect at once.
func (p *pageWork) add(w http.ResponseWriter, r *http.Request) {
	var in wanted
	if !body(w, r, &in) {
		return
	}
	all, err := p.draft(r.Context(), &in)
	if err != nil {
		refuseDraft(w, err)
		return
	}
	var names, served []string
	servers := slices.DeleteFunc(all.servers, func(one draft) bool {
		_, chosen := in.Names[one.name]
		return one.entry == nil || in.Names != nil && !chosen
	})
	for i := range servers {
		servers[i].name = strings.TrimSpace(cmp.Or(in.Names[servers[i].name], servers[i].name))
		names = append(names, servers[i].name)
	}
	if len(servers) == 0 || slices.Contains(names, "") {
		page.Refuse(w, http.StatusBadRequest, "bad_request", "there is no server to add, or it has no name")
		return
	}
	edit := func(data []byte, _ string) ([]byte, error) {
		var err error
		for _, one := range servers {
			if data, err = setup.AddServer(data, one.name, one.entry); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
	check := func(cfg *config.Config) error {
		for _, name := range names {
			as := ""
			if err := usable(name, &as)(cfg); err != nil {
				return err
			}
			served = append(served, as)
		}
		return nil
	}
	keep := func() (func(), error) { return KeepSecrets(r.Context(), all.secrets) }
	if p.api.change(w, r, change{"add", strings.Join(names, ", "), edit, check, keep}) {
		httpd.WriteJSON(w, http.StatusCreated, map[string]any{"added": served})
	}
}

// KeepSecrets stores secrets in the keyring. The function undo is for a caller that fails later. It deletes the secrets that
// are new, and restores the old values of the others, unless the keyring refuses that. If a secret cannot be stored,
// KeepSecrets calls undo itself and returns an error; then another call of undo does nothing.
func KeepSecrets(ctx context.Context, secrets []setup.Secret) (undo func(), err error) {
	store, back := Secrets(), []func(){}
	late := context.WithoutCancel(ctx) // so that undo works even after the viewer has disconnected
	undo = func() {
		for _, one := range slices.Backward(back) {
			one()
		}
		back = nil
	}
	for _, one := range secrets {
		before, err := store.Get(ctx, one.Name)
		switch {
		case err == nil:
			back = append(back, func() { _ = store.Seal(late, one.Name, before) })
		case errors.Is(err, secret.ErrNotFound):
			back = append(back, func() { _, _ = store.Delete(late, one.Name) })
			err = nil
		}
		if err == nil {
			err = store.Seal(ctx, one.Name, one.Value)
		}
		if err != nil {
			undo()
			return undo, fmt.Errorf("moving %s to the keyring: %w", one.Name, err)
		}
	}
	return undo, nil
}

// find responds with the servers that the registry finds for a search word.
func (p *pageWork) find(w http.ResponseWriter, r *http.Request) {
	registry := p.registry()
	servers, more, err := registry.Find(r.Context(), r.URL.Query().Get("query"))
	if err != nil {
		page.Refuse(w, http.StatusBadGateway, "offline", sanitize.Line(err.Error(), 400))
		return
	}
	out := []map[string]any{}
	for i := range servers {
		s := &servers[i]
		kinds := map[string]bool{}
		ways, _ := s.Ways()
		for _, way := range ways {
			kinds[way.Kind] = true
		}
		out = append(out, map[string]any{
			"name": sanitize.Line(s.Name, 200), "version": sanitize.Line(s.Version, 50), "description": sanitize.Line(s.Description, 400),
			"repository": sanitize.Line(s.Repository.URL, 300), "deprecated": s.Deprecated, "kinds": slices.Sorted(maps.Keys(kinds)),
		})
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"registry": registry.URL, "more": more, "servers": out})
}

// published responds with the ways in which mcpx can use a server of the registry, such as running its npm package or connecting to
// its URL. For each way it lists the values that the viewer must enter.
func (p *pageWork) published(w http.ResponseWriter, r *http.Request) {
	s, err := p.registry().Latest(r.Context(), r.URL.Query().Get("name"))
	if errors.Is(err, published.ErrNoServer) {
		page.Refuse(w, http.StatusNotFound, "unknown_server", "the registry lists no such server")
		return
	} else if err != nil {
		page.Refuse(w, http.StatusBadGateway, "offline", sanitize.Line(err.Error(), 400))
		return
	}
	ways, unusable := s.Ways()
	all := []map[string]any{}
	for _, way := range ways {
		_, missing := exec.LookPath(way.Runner)
		asks := []map[string]any{}
		for _, ask := range way.Asks() {
			asks = append(asks, map[string]any{
				"name": ask.Name, "description": sanitize.Line(ask.Description, 400), "required": ask.Required, "secret": ask.Secret,
				"choices": orEmpty(ask.Choices), "default": ask.Default,
			})
		}
		all = append(all, map[string]any{
			"kind": way.Kind, "runner": way.Runner, "found": way.Runner == "" || missing == nil, "asks": asks,
		})
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]any{
		"name": sanitize.Line(s.Name, 200), "version": sanitize.Line(s.Version, 50), "description": sanitize.Line(s.Description, 400),
		"repository": sanitize.Line(s.Repository.URL, 300), "deprecated": s.Deprecated, "short": published.ShortName(s.Name),
		"ways": all, "unusable": orEmpty(unusable), "keyring": Secrets().Works(r.Context()) == nil,
	})
}
