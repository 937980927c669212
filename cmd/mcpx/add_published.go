package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/published"
	"mcpx/internal/desk/setup"
)

// publishedFlags are the flags of add for a server of an MCP registry.
type publishedFlags struct {
	As   string            `env:"MCPX_ADD_AS" help:"What the server is to be called, if not as in the registry." placeholder:"NAME"`
	From string            `env:"MCPX_ADD_FROM" help:"Which of the registry's ways: npm, pypi, oci or remote." placeholder:"WAY" enum:",npm,pypi,oci,remote" default:""`
	Set  map[string]string `env:"MCPX_ADD_SET" help:"A value for the server. Secrets go to the keyring, unless they are $${VARIABLE}." placeholder:"NAME=VALUE" mapsep:"none"`
	Yes  bool              `short:"y" help:"Write without asking."`
}

// given reports whether the user set --as, --from or --set, which are only for a server of an MCP registry.
func (f publishedFlags) given() bool { return f.As != "" || f.From != "" || len(f.Set) > 0 }

// publishedServer is a server from an MCP registry that add puts into the config. A registry may know several ways to use a server,
// such as running its npm package or connecting to a URL; the field way is the chosen one.
type publishedServer struct {
	*published.Server
	way     published.Way
	others  []string // the kinds of the other ways that mcpx could use
	name    string   // the server's name in the config
	given   map[string]string
	secrets []setup.Secret
	unset   []string // variables that the user must set in the environment of mcpx
}

// fromRegistry finds the server in the registry, asks the user for the values that it needs, and shows what would run. It returns
// the server and its entry for the config, or nil if the user declines. It writes and starts nothing.
func (cmd *addCommand) fromRegistry(ctx context.Context, c *cli, s streams) (*publishedServer, setup.Entry, error) {
	if len(cmd.Env)+len(cmd.Header) > 0 || cmd.Type != "" {
		return nil, setup.Entry{}, &usageError{hintError{"--env, --header and --type need a command or a URL",
			"for a server of the registry: --set NAME=VALUE"}}
	}
	registry, err := c.registry(s)
	if err != nil {
		return nil, setup.Entry{}, err
	}
	found, err := c.publishedAs(ctx, registry, cmd.Name)
	if err != nil {
		return nil, setup.Entry{}, err
	}
	p := &publishedServer{Server: found, name: cmp.Or(cmd.As, published.ShortName(found.Name)), given: maps.Clone(cmd.Set)}
	if p.given == nil {
		p.given = map[string]string{}
	}
	asker := &asker{s: s, yes: cmd.Yes}
	if err := p.choose(cmd.From); err != nil {
		return nil, setup.Entry{}, err
	}
	if err := cmd.free(c, p.name); err != nil {
		return nil, setup.Entry{}, err
	}
	if err := p.values(ctx, asker, func(missing []string) string { return cmd.again(c, found.Name, missing...) }); err != nil {
		return nil, setup.Entry{}, err
	}
	if err := p.paths(); err != nil {
		return nil, setup.Entry{}, err
	}
	entry, err := p.way.Entry(p.given)
	if err != nil {
		return nil, entry, err
	}
	p.show(s, registry, entry)
	file, err := c.configFile()
	if err != nil {
		return nil, entry, err
	}
	question := fmt.Sprintf("Add it to %s as %s?", file, p.name)
	if !cmd.NoCheck {
		question = fmt.Sprintf("Add it to %s as %s, and %s it to see what it has?", file, p.name,
			map[bool]string{true: "start", false: "ask"}[entry.Command != ""])
	}
	if ok, err := asker.ask(ctx, question, cmd.again(c, found.Name)); err != nil || !ok {
		return nil, entry, err
	}
	return p, entry, nil
}

// again returns, for hints, the command line that repeats this add without questions: with the flags that the user gave, the words
// in more, and --yes. The values of --set are left out, because they may be secret.
func (cmd *addCommand) again(c *cli, name string, more ...string) string {
	words := []string{"add", sanitize.Line(name, 200)}
	if cmd.As != "" {
		words = append(words, "--as", cmd.As)
	}
	if cmd.From != "" {
		words = append(words, "--from", cmd.From)
	}
	for _, key := range slices.Sorted(maps.Keys(cmd.Set)) {
		words = append(words, "--set", key+"=…")
	}
	words = append(append(words, more...), "--yes")
	if cmd.NoCheck {
		words = append(words, "--no-check")
	}
	return c.hint(words...)
}

// free returns an error if the config has a server of this name.
func (cmd *addCommand) free(c *cli, name string) error {
	file, err := c.configFile()
	if err != nil {
		return err
	}
	data, _, err := config.Read(file)
	if err == nil && slices.Contains(setup.ServerNames(data), name) {
		err = &hintError{fmt.Sprintf("%s %v", name, setup.ErrThere), "another name: --as NAME; or first " + c.hint("remove", name)}
	}
	return err
}

// choose chooses the way in which mcpx will use the server: the first way that needs no program, or whose program, such as npx, is
// installed. If there is no such way, choose takes the first way of all. If kind is not empty, it considers only ways of this kind,
// such as npm. If there is none, it returns an error.
func (p *publishedServer) choose(kind string) error {
	ways, unusable := p.Ways()
	at := -1
	for i, way := range ways {
		if kind != "" && way.Kind != kind {
			continue
		}
		if _, err := exec.LookPath(way.Runner); way.Runner == "" || err == nil {
			at = i
			break
		}
		if at < 0 {
			at = i
		}
	}
	if at < 0 {
		kinds := kindsOf(p.Server)
		text := fmt.Sprintf("%s has no way that mcpx can use", sanitize.Line(p.Name, 200))
		if kind != "" && kinds != "-" {
			text = fmt.Sprintf("%s has no %s, but %s", sanitize.Line(p.Name, 200), kind, kinds)
		}
		return &hintError{text, cmp.Or(strings.Join(unusable, "; "), "see "+sanitize.Line(p.Repository.URL, 200))}
	}
	p.way = ways[at]
	for i, way := range ways {
		if i != at && way.Kind != p.way.Kind && !slices.Contains(p.others, way.Kind) {
			p.others = append(p.others, way.Kind)
		}
	}
	return nil
}

// values asks the user for the required values that the flags do not give. It asks for secrets first: they must not appear on
// the terminal, and hiding them is no longer possible once the asker has begun to read lines. If there is no keyring for a
// secret, or nobody to ask for it, the config refers to an environment variable. again returns, for the hint, the
// command line of this add with the flags that are missing.
func (p *publishedServer) values(ctx context.Context, a *asker, again func(missing []string) string) error {
	var missing []string
	asks := p.way.Asks()
	for name := range p.given {
		if !slices.ContainsFunc(asks, func(ask published.Ask) bool { return ask.Name == name }) {
			text := fmt.Sprintf("%s takes no value %s", sanitize.Line(p.Name, 200), name)
			return &usageError{hintError{text, "it takes " + askNames(asks)}}
		}
	}
	slices.SortStableFunc(asks, func(x, y published.Ask) int {
		return cmp.Compare(map[bool]int{false: 1}[x.Secret], map[bool]int{false: 1}[y.Secret])
	})
	keyring := app.Secrets().Works(ctx)
	for _, ask := range asks {
		value, given := p.given[ask.Name]
		switch {
		case !given && !ask.Required:
			continue
		case given && !ask.Secret, given && strings.HasPrefix(value, "${"):
			continue
		case ask.Secret && keyring != nil, ask.Secret && !given && (a.yes || !a.s.terminal):
			p.variable(ask)
			continue
		case !given && a.s.terminal && !a.yes:
			var err error
			if value, err = a.value(ctx, ask); err != nil {
				return err
			}
		}
		if value = cmp.Or(value, ask.Default); value == "" {
			missing = append(missing, "--set", ask.Name+"=VALUE")
		}
		p.given[ask.Name] = value
		if ask.Secret && value != "" {
			p.given[ask.Name] = p.sealed(ask, value)
		}
	}
	if len(missing) > 0 {
		return &hintError{sanitize.Line(p.Name, 200) + " needs values: " + askNames(asks),
			again(missing)}
	}
	return nil
}

// paths replaces each value that is the relative path of an existing file by the absolute path, because clients start mcpx in
// another folder. A value counts as a path if it has a form that fromHere knows, such as ./x, or if the registry says that it
// is a path.
func (p *publishedServer) paths() (err error) {
	for _, ask := range p.way.Asks() {
		value, given := p.given[ask.Name]
		if _, missing := os.Stat(value); ask.Path && missing == nil && filepath.IsLocal(value) {
			value = "./" + value
		}
		if value, err = fromHere(value); err != nil {
			return err
		}
		if given {
			p.given[ask.Name] = value
		}
	}
	return nil
}

// variable makes the config refer to an environment variable in place of the secret that ask is about. The user must set the
// variable.
func (p *publishedServer) variable(ask published.Ask) {
	name := published.VariableName(ask)
	p.given[ask.Name] = "${" + name + "}"
	p.unset = append(p.unset, name)
}

// sealed adds a secret value to the secrets that will be stored in the keyring. It returns the reference that the config gets in
// place of the value.
func (p *publishedServer) sealed(ask published.Ask, value string) string {
	secret := setup.Secret{Name: published.SecretName(p.name, ask), Value: value}
	p.secrets = append(p.secrets, secret)
	return "${keyring:" + secret.Name + "}"
}

// value asks for one value at the terminal, and returns what the user types. It hides what the user types for a secret, unless the
// asker has already begun to read lines.
func (a *asker) value(ctx context.Context, ask published.Ask) (string, error) {
	prompt := sanitize.Line(ask.Name, 100)
	if ask.Description != "" {
		prompt += " (" + ask.Description + ")"
	}
	if len(ask.Choices) > 0 {
		prompt += ", one of " + sanitize.Line(strings.Join(ask.Choices, ", "), 200)
	}
	if ask.Default != "" && !ask.Secret {
		prompt += " [" + sanitize.Line(ask.Default, 100) + "]"
	}
	if _, real := a.s.in.(*os.File); ask.Secret && real && a.lines == nil {
		return hiddenInput(ctx, a.s, prompt+" (not shown): ")
	}
	return a.line(ctx, prompt+": ")
}

func askNames(asks []published.Ask) string {
	names := make([]string, len(asks))
	for i, ask := range asks {
		names[i] = sanitize.Line(ask.Name, 100)
		if ask.Description != "" {
			names[i] += " (" + ask.Description + ")"
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// show prints what the registry says about the server, and what add would write.
func (p *publishedServer) show(s streams, registry published.Registry, entry setup.Entry) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprint(s.out, s.screen.Hang(fmt.Sprintf("%-13s", label), sanitize.Line(text, 2000)))
		}
	}
	fmt.Fprintf(s.out, "%s %s, as %s lists it\n", s.screen.Bold(sanitize.Line(p.Name, 200)), sanitize.Line(p.Version, 50), registry.URL)
	line("says", p.Description)
	line("warning", p.Deprecated)
	line("source", p.Repository.URL)
	if entry.Command != "" {
		line("runs", terminal.CommandLine(append([]string{entry.Command}, entry.Args...)...))
	}
	line("connects to", entry.URL)
	for _, of := range []map[string]string{entry.Env, entry.Headers} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			line(name, of[name])
		}
	}
	var optional []published.Ask
	for _, ask := range p.way.Asks() {
		if _, given := p.given[ask.Name]; !given && !ask.Required {
			optional = append(optional, ask)
		}
	}
	if len(optional) > 0 {
		line("also takes", askNames(optional)+", with --set NAME=VALUE")
	}
	line("other ways", strings.Join(p.others, ", "))
	for _, one := range p.secrets {
		line("keyring", "gets "+one.Name)
	}
	for _, name := range p.unset {
		line("needs", "the environment variable "+name+" where mcpx runs")
	}
	if _, err := exec.LookPath(entry.Command); entry.Command != "" && err != nil {
		line("warning", entry.Command+" is not on the PATH; install it first")
	}
	fmt.Fprintln(s.out)
}
