package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type addCommand struct {
	Name   string   `arg:"" help:"What the server is to be called; or, without anything after it, its name in the MCP registry."`
	Target []string `arg:"" optional:"" name:"command-or-url" help:"The program and its arguments, after --; or the URL of a remote server; or JSON as in the file of a client."`
	Env    []string `env:"MCPX_ADD_ENV" help:"An environment variable of the program." placeholder:"KEY=VALUE" sep:"none"`
	Header []string `env:"MCPX_ADD_HEADER" help:"A header for the remote server." placeholder:"KEY=VALUE" sep:"none"`
	Type   string   `help:"The transport: stdio, http, sse or websocket; detected if not given." placeholder:"TYPE" enum:",stdio,http,sse,websocket" default:""`

	NoCheck bool `help:"Do not try the server."`
	publishedFlags
}

func (cmd *addCommand) Help() string {
	return `Comments and order of the config stay. If there is no config, one is made that only you can read. Then the server is tried.
Without a command or URL, add looks NAME up in an MCP registry ("mcpx find"), asks for the values that the server needs, and shows
the command before it writes and starts anything.

` + examples(
		"mcpx add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents",
		"mcpx add io.github.owner/server --set LOG_LEVEL=debug",
		"mcpx add notes --env 'NOTES_TOKEN=${NOTES_TOKEN}' -- uvx notes-mcp",
		"mcpx add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'",
		`mcpx add memory '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}}'`,
	)
}

func (cmd *addCommand) Run(ctx context.Context, parsed *kong.Context, c *cli, s streams, sys setup.System) error {
	if at := slices.Index(parsed.Args, "--"); at >= 0 && !slices.Contains(parsed.Args[:at], cmd.Name) {
		again := append([]string{"add", "NAME", "--"}, parsed.Args[at+1:]...)
		return &usageError{hintError{"the server has no name", "write the name before --: " + c.hint(again...)}}
	}
	if what := strings.TrimSpace(cmd.Name); len(cmd.Target) == 0 && (setup.IsSnippet(what) || strings.Contains(what, "://")) {
		return &usageError{hintError{"the server has no name", "write the name first: " + c.hint("add", "NAME") + " '…'"}}
	}
	if len(cmd.Target) == 0 {
		return cmd.addPublished(ctx, c, s)
	}
	if cmd.given() {
		return &usageError{hintError{"--as, --from and --set are for a server of the MCP registry", "leave out the command or URL, or the flags"}}
	}
	edit, err := cmd.edit(parsed, c, s, sys)
	if err != nil {
		return err
	}
	file, err := c.editConfig(s, edit)
	if errors.Is(err, setup.ErrThere) {
		err = &hintError{fmt.Sprintf("%s %v", cmd.Name, setup.ErrThere), "remove it first: " + c.hint("remove", cmd.Name)}
	}
	if err != nil {
		return err
	}
	return cmd.added(ctx, c, s, file)
}

// addPublished adds a server that the MCP registry describes.
func (cmd *addCommand) addPublished(ctx context.Context, c *cli, s streams) error {
	p, entry, err := cmd.fromRegistry(ctx, c, s)
	if err != nil || p == nil {
		return err
	}
	cmd.Name, entry = p.name, entry.WithShare(s.reading())
	file, err := c.configFile()
	if err != nil {
		return err
	}
	undo := func() {}
	err = s.configAt(file).Edit(func(data []byte) ([]byte, error) { return setup.AddServer(data, p.name, entry) },
		func(*config.Config) (err error) { // called when the new text is known to be valid
			undo, err = app.KeepSecrets(ctx, p.secrets)
			return err
		})
	if err != nil {
		undo()
		return err
	}
	return cmd.added(ctx, c, s, file)
}

// added tells the user that the server is in the config and then, unless the flag --no-check is set, tries the server.
func (cmd *addCommand) added(ctx context.Context, c *cli, s streams, file string) error {
	fmt.Fprintf(s.out, "added %s to %s\n", cmd.Name, file)
	defer c.hintReload(ctx, s, file)
	if cmd.NoCheck {
		fmt.Fprintln(s.out, "try it: "+c.hint("check", cmd.Name))
		return nil
	}
	return cmd.try(ctx, c, s, file)
}

// try starts the new server and prints what the server offers. It is no error if the server is unavailable, because the config has
// it already.
func (cmd *addCommand) try(ctx context.Context, c *cli, s streams, file string) error {
	cfg, err := readConfig(ctx, file, s, cmd.Name)
	if err != nil {
		return err
	}
	name := cfg.Served(cmd.Name)
	a, err := c.start(s, cfg, app.Command, name)
	if err != nil {
		return err
	}
	defer a.Close()
	check := &checkCommand{}
	check.wait(ctx, a, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, one := range checked(c, a, []string{name}, nil, check.silent).Servers {
		text := one.Name + " is " + stateOn(s.screen, one.State)
		if server, ok := a.Executor.Catalogue(nil).Server(name); ok && one.Tools != nil {
			text += ": " + terminal.Count(*one.Tools, "tool") + shortList(server)
		}
		if len(one.Notes) > 0 {
			text += ": " + strings.Join(one.Notes, "; ")
		}
		fmt.Fprint(s.out, s.screen.Hang("", text))
		if one.State != catalog.Ready && one.State != catalog.Disabled {
			fmt.Fprintln(s.out, "try it again: "+c.hint("check", cmd.Name)+"; or take it out: "+c.hint("remove", cmd.Name))
		}
	}
	return nil
}

// shortList returns a colon and the names of a server's first tools, or "" if it has none.
func shortList(server *catalog.Server) string {
	const most = 12
	names := server.ToolNames()
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	for i := range names {
		names[i] = sanitize.Line(names[i], 60)
	}
	return ": " + strings.Join(names, ", ") + more
}

// edit returns a function that adds the server of the command line to the text of the config. An error means that the command line
// is wrong.
func (cmd *addCommand) edit(parsed *kong.Context, c *cli, s streams, sys setup.System) (func(data []byte) ([]byte, error), error) {
	if text := strings.TrimSpace(cmd.Target[0]); setup.IsSnippet(text) {
		switch {
		case len(cmd.Target) > 1:
			return nil, &hintError{"the JSON is several words", "put it into single quotes: " + c.hint("add", cmd.Name) + " '{…}'"}
		case len(cmd.Env)+len(cmd.Header) > 0 || cmd.Type != "":
			return nil, &hintError{"--env, --header and --type cannot change an entry in JSON", "write their values into the JSON"}
		}
		found, err := setup.ReadSnippet(sys, cmd.Name, text, s.reading())
		if err != nil {
			return nil, err
		}
		return func(data []byte) ([]byte, error) { return setup.AddServer(data, cmd.Name, found.ToAdd()) }, nil
	}
	entry, err := cmd.entry(parsed, c)
	entry = entry.WithShare(s.reading())
	return func(data []byte) ([]byte, error) { return setup.AddServer(data, cmd.Name, entry) }, err
}

func (cmd *addCommand) entry(parsed *kong.Context, c *cli) (setup.Entry, error) {
	entry := setup.Entry{Type: cmd.Type}
	first := cmd.Target[0]
	scheme, _, isURL := strings.Cut(first, "://")
	isURL = isURL && len(cmd.Target) == 1 && !strings.ContainsAny(scheme, `/\ `)
	var err error
	if strings.TrimSpace(first) == "" {
		return entry, &hintError{"the program is an empty word", c.hint("add", cmd.Name, "--", "COMMAND")}
	}
	if isURL {
		if scheme = strings.ToLower(scheme); !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme) {
			return entry, &hintError{
				fmt.Sprintf("a remote server is reached over http, https, ws or wss, not %s", scheme),
				c.hint("add", cmd.Name, "https://HOST/PATH"),
			}
		}
		entry.URL = first
		if len(cmd.Env) > 0 {
			return entry, &hintError{"--env is for a program; a remote server has headers", "--header 'Authorization=Bearer ${TOKEN}'"}
		}
		entry.Headers, err = keyValues("--header", cmd.Header)
		return entry, err
	}
	// HOST:PORT alone is a URL without its scheme, because no program has such a name.
	if u, err := url.Parse("http://" + first); err == nil && u.Port() != "" && len(cmd.Target) == 1 {
		return entry, &hintError{"the URL has no http:// or https://", c.hint("add", cmd.Name, "http://"+first)}
	}
	if len(cmd.Header) > 0 {
		return entry, &hintError{"--header is for a remote server; a program has an environment", "--env 'TOKEN=${TOKEN}'"}
	}
	if len(cmd.Target) == 1 && strings.Contains(first, " ") && len(strings.Fields(first)) > 1 && !strings.ContainsAny(first, `/\"'`) {
		return entry, &hintError{"the program and its arguments are one word", c.hint(append([]string{"add", cmd.Name, "--"}, strings.Fields(first)...)...)}
	}
	if last := parsed.Path[len(parsed.Path)-1]; last.Flag != nil && !slices.Contains(parsed.Args, "--") {
		return entry, &usageError{hintError{"flags after the program may be meant for it", usageHint(parsed.Kong, parsed.Args)}}
	}
	words := make([]string, len(cmd.Target))
	for i, word := range cmd.Target {
		if words[i], err = fromHere(word); err != nil {
			return entry, err
		}
	}
	entry.Command, entry.Args = words[0], words[1:]
	entry.Env, err = keyValues("--env", cmd.Env)
	return entry, err
}

// fromHere makes the paths ., .., ~, ./x, ../x and ~/x absolute if they exist: clients start mcpx in another folder than the
// user's working folder, and mcpx does not expand ~ in the arguments of a config.
func fromHere(word string) (string, error) {
	path := word
	switch first, rest, _ := strings.Cut(filepath.ToSlash(word), "/"); first {
	case ".", "..":
	case "~":
		home, err := os.UserHomeDir()
		if err != nil {
			return word, nil
		}
		path = filepath.Join(home, rest)
	default:
		return word, nil
	}
	if _, err := os.Stat(path); err != nil {
		return word, nil
	}
	return filepath.Abs(path)
}

// keyValues reads KEY=VALUE, and for headers also KEY: VALUE. Its errors do not quote the arguments, which may
// contain a secret.
func keyValues(flag string, list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, one := range list {
		at := strings.IndexByte(one, '=')
		if colon := strings.IndexByte(one, ':'); flag == "--header" && colon > 0 && (at < 0 || colon < at) {
			at = colon
		}
		if at <= 0 {
			return nil, &hintError{flag + " needs KEY=VALUE", flag + " 'KEY=VALUE'"}
		}
		key := strings.TrimSpace(one[:at])
		if strings.ContainsAny(key, " \t\r\n") {
			return nil, &hintError{flag + " needs KEY=VALUE, and a name has no spaces", flag + " 'KEY=VALUE'"}
		}
		all[key] = strings.TrimLeft(one[at+1:], " ")
	}
	return all, nil
}
