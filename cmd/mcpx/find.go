package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/published"
	"mcpx/internal/desk/setup"
)

type findCommand struct {
	Word []string `arg:"" help:"A part of the server's name or description."`
}

func (cmd *findCommand) Help() string {
	return `Asks the MCP registry that the config key registry names; without the key, the official one. Anyone can publish there: the
first part of a name says who did, and nothing says that the server is good. Nothing is started and nothing is written.

` + examples("mcpx find postgres", "mcpx add io.github.owner/server")
}

func (cmd *findCommand) Run(ctx context.Context, c *cli, s streams) error {
	registry, err := c.registry(s)
	if err != nil {
		return err
	}
	word := strings.Join(cmd.Word, " ")
	servers, more, err := registry.Find(ctx, word)
	if err != nil {
		return c.unreached(err)
	}
	if len(servers) == 0 {
		text := fmt.Sprintf("%s lists no server with %q in its name or description", registry.URL, word)
		return &hintError{text, "try a shorter word"}
	}
	rows := []terminal.Row{{Cells: []string{"SERVER", "VERSION", "RUNS AS"}}}
	for _, server := range servers {
		row := terminal.Row{Cells: []string{sanitize.Line(server.Name, 200), sanitize.Line(server.Version, 30), kindsOf(&server)}}
		for _, note := range []string{server.Description, server.Deprecated} {
			if note != "" {
				row.Notes = append(row.Notes, sanitize.Line(note, 200))
			}
		}
		rows = append(rows, row)
	}
	fmt.Fprint(s.out, s.screen.Table(len(rows[0].Cells), rows))
	if more {
		fmt.Fprintln(s.out, "\nthere are more; a longer word finds fewer")
	}
	fmt.Fprintln(s.out, "\nadd one: "+c.hint("add", "SERVER"))
	return nil
}

// kindsOf returns in one text the kinds of ways in which mcpx can use a server, such as npm or remote. If there are none, it
// returns "-".
func kindsOf(server *published.Server) string {
	var kinds []string
	ways, _ := server.Ways()
	for _, way := range ways {
		if !slices.Contains(kinds, way.Kind) {
			kinds = append(kinds, way.Kind)
		}
	}
	if len(kinds) == 0 {
		return "-"
	}
	return strings.Join(kinds, ", ")
}

// registry returns the MCP registry that the config names, or the default registry if there is no config.
func (c *cli) registry(s streams) (published.Registry, error) {
	file, err := c.configFile()
	if err != nil {
		return published.Registry{}, err
	}
	data, existed, err := config.Read(file)
	if err != nil || !existed || setup.Blank(data) {
		return published.Registry{URL: config.DefaultRegistry}, err
	}
	cfg, err := config.Parse(file, data, s.reading())
	if err != nil {
		return published.Registry{}, err
	}
	return published.Registry{URL: cfg.Registry}, nil
}

// unreached returns the error of a registry with a hint that says what works without a registry. A cancelled request gets no hint.
func (c *cli) unreached(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &hintError{err.Error(), "without it: " + c.hint("add", "NAME", "--", "COMMAND") + ", or " + c.hint("add", "NAME", "URL") +
		", as the server's README says; " +
		`"registry" in the config names another registry`}
}

// publishedAs finds the server that the user means: by its full name in the registry, or by the part of the name after the slash if
// only one server has this part.
func (c *cli) publishedAs(ctx context.Context, registry published.Registry, name string) (*published.Server, error) {
	if strings.Contains(name, "/") {
		server, err := registry.Latest(ctx, name)
		if errors.Is(err, published.ErrNoServer) {
			return nil, &hintError{fmt.Sprintf("%s lists no server %s", registry.URL, name), c.hint("find", "WORD") + " looks for one"}
		}
		if err != nil {
			return nil, c.unreached(err)
		}
		return server, nil
	}
	found, _, err := registry.Find(ctx, name)
	if err != nil {
		return nil, c.unreached(err)
	}
	var same, others []string
	at := 0
	for i, server := range found {
		shown := sanitize.Line(server.Name, 200)
		if strings.EqualFold(published.ShortName(server.Name), name) {
			same, at = append(same, shown), i
		} else {
			others = append(others, shown)
		}
	}
	switch {
	case len(same) == 1:
		return &found[at], nil
	case len(same) > 1:
		return nil, &hintError{fmt.Sprintf("%s lists several servers %s: %s", registry.URL, name, strings.Join(same, ", ")),
			"give the whole name: " + c.hint("add", same[0])}
	case len(others) > 0:
		near := strings.Join(others[:min(len(others), 8)], ", ")
		return nil, &hintError{fmt.Sprintf("%s lists no server %s, but %s", registry.URL, name, near),
			"give the whole name, or what runs the server: " + c.hint("add", name, "--", "COMMAND")}
	}
	return nil, &hintError{fmt.Sprintf("%s lists no server %s", registry.URL, name),
		"say what runs it: " + c.hint("add", name, "--", "COMMAND") + ", or " + c.hint("add", name, "URL")}
}
