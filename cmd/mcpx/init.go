package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type initCommand struct {
	Yes     bool     `short:"y" help:"Write without asking."`
	Move    bool     `help:"Take the servers that mcpx serves then out of the clients' files."`
	From    []string `help:"Take the servers of this file, instead of looking for the files of clients. May be repeated." placeholder:"FILE" sep:"none" type:"path"`
	NoCheck bool     `help:"Do not try the servers."`
}

// Help has the examples.
func (cmd *initCommand) Help() string {
	return `Finds the servers that your MCP clients have, writes them into the config of mcpx, tries them, and connects the clients.
A config that is there already is kept, and gets what it does not have.

` + examples("mcpx init", "mcpx init --yes --move", "mcpx init --from .mcp.json --from ~/.codex/config.toml")
}

// Run takes the user from nothing to a config and connected clients.
func (cmd *initCommand) Run(ctx context.Context, c *cli, s streams) error {
	sys, err := s.system()
	if err != nil {
		return err
	}
	file, err := c.configFile()
	if err != nil {
		return err
	}
	sources, err := cmd.sources(sys, s)
	if err != nil {
		return err
	}
	next := draft{file: file}
	if next.before, next.existed, err = setup.ReadConfig(file); err != nil {
		return err
	}
	var have []setup.Found
	if next.existed {
		have = setup.ReadFile(sys, file, s.reading()).Servers
	}
	var skipped []setup.Skipped
	next.servers, skipped = setup.Merge(sys, have, sources)
	cmd.show(sys, s, sources, next.servers, skipped)
	if len(next.servers) == 0 && !next.existed {
		return &hintError{
			"no servers were found in the files of MCP clients",
			"add one: mcpx add NAME -- COMMAND, or mcpx add NAME URL; mcpx demo needs none",
		}
	}
	unread := unreadable(sys, sources)
	a := &asker{s: s, yes: cmd.Yes}
	if len(next.servers) == 0 {
		all := "all of them"
		if len(unread) > 0 {
			all = "all that could be read"
		}
		fmt.Fprintf(s.out, "%s has %s\n", sys.Short(file), all)
	} else if written, err := cmd.write(ctx, a, sys, next); err != nil || !written {
		return err
	}
	here := *c
	here.Config = file
	if !cmd.NoCheck {
		fmt.Fprintln(s.out)
		// The clients get connected even if a server is down.
		var down *exitError
		if err := (&checkCommand{}).Run(ctx, &here, s); err != nil && !errors.As(err, &down) {
			return err
		}
	}
	err = cmd.connect(ctx, wiring{cli: &here, s: s, sys: sys, asker: a, move: cmd.Move}, sources)
	if err == nil && len(unread) > 0 {
		err = &hintError{
			"cannot be read, so their servers were not taken: " + strings.Join(unread, ", "),
			"make them valid and run mcpx init again",
		}
	}
	return err
}

// unreadable are the files that cannot be read.
func unreadable(sys setup.System, sources []setup.Source) (files []string) {
	for _, source := range sources {
		if source.Err != nil {
			files = append(files, sys.Short(source.File))
		}
	}
	return files
}

// sources are the files to take servers from.
func (cmd *initCommand) sources(sys setup.System, s streams) ([]setup.Source, error) {
	if len(cmd.From) == 0 {
		return setup.Find(sys, s.reading()), nil
	}
	var sources []setup.Source
	for _, file := range cmd.From {
		file, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		source := setup.ReadFile(sys, file, s.reading())
		switch {
		case source.Err != nil:
			return nil, fmt.Errorf("%s: %w", file, source.Err)
		case !source.Exists():
			return nil, fmt.Errorf("%s: there is no such file", file)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// show prints the servers that were found, and which of them init will take.
func (cmd *initCommand) show(sys setup.System, s streams, sources []setup.Source, merged []setup.Merged, skipped []setup.Skipped) {
	section := func(title string, heads []string, rows []terminal.Row) {
		if len(rows) > 0 {
			rows = append([]terminal.Row{{Cells: heads}}, rows...)
			fmt.Fprint(s.out, s.screen.Bold(title), "\n\n", s.screen.Table(len(heads), rows), "\n")
		}
	}
	var found, take, leave []terminal.Row
	for _, source := range sources {
		client, count := cmp.Or(source.Client, "--from"), terminal.Count(len(source.Servers), "server")
		row := terminal.Row{Cells: []string{client, count, sys.Short(source.File)}}
		if source.Err != nil {
			row.Cells[1], row.Notes = "-", []string{"cannot be read: " + source.Err.Error()}
		}
		found = append(found, row)
	}
	for _, m := range merged {
		row := terminal.Row{Cells: []string{m.Name, m.Found.Runs(), strings.Join(m.Clients, ", ")}}
		if !m.Found.Server.Enabled {
			row.Notes = []string{"disabled"}
		}
		if m.Found.Needs != "" {
			row.Notes = append(row.Notes, "will not work yet: "+m.Found.Needs)
		}
		take = append(take, row)
	}
	for _, one := range skipped {
		leave = append(leave, terminal.Row{Cells: []string{one.Name, one.From}, Notes: []string{one.Why}})
	}
	section("found", []string{"CLIENT", "SERVERS", "FILE"}, found)
	section("to take", []string{"SERVER", "RUNS", "FROM"}, take)
	section("not to take", []string{"SERVER", "FROM"}, leave)
	if files := setup.FindProject(sys); len(cmd.From) == 0 && len(files) > 0 {
		fmt.Fprintf(s.out, "not read, as they belong to this folder's project: %s (mcpx init --from FILE takes one)\n\n", strings.Join(files, ", "))
	}
}

// draft is a config that is about to be written.
type draft struct {
	file    string
	before  []byte // its text now
	existed bool
	servers []setup.Merged // to add
}

// write makes the config, or adds to an existing one and keeps a copy of that.
func (cmd *initCommand) write(ctx context.Context, a *asker, sys setup.System, next draft) (bool, error) {
	s := a.s
	var data []byte
	var err error
	question := fmt.Sprintf("Write %s with %s?", sys.Short(next.file), terminal.Count(len(next.servers), "server"))
	if !setup.Blank(next.before) {
		question = fmt.Sprintf("Add %s to %s?", terminal.Count(len(next.servers), "server"), sys.Short(next.file))
		data, err = setup.AddToConfig(next.before, next.servers)
	} else {
		data, err = setup.NewConfig(next.servers)
	}
	if err == nil {
		_, err = config.Parse(next.file, data, s.reading())
	}
	if err != nil {
		return false, s.configAt(next.file).WhyNot(next.before, err)
	}
	unasked := "mcpx init --yes"
	if cmd.Move {
		unasked += " --move"
	}
	for _, from := range cmd.From {
		unasked += " --from " + from
	}
	if ok, err := a.ask(ctx, question, unasked); err != nil || !ok {
		return false, err
	}
	if next.existed {
		kept, err := backups()
		if err != nil {
			return false, err
		}
		backup, err := kept.Keep("config", next.file, next.before)
		if err != nil {
			return false, err
		}
		fmt.Fprintf(s.out, "the config as it was: %s\n", sys.Short(backup))
	}
	if err := setup.WriteConfig(next.file, data, next.before, next.existed); err != nil {
		return false, err
	}
	fmt.Fprintf(s.out, "wrote %s\n", sys.Short(next.file))
	if n := setup.Secrets(next.servers); n > 0 {
		fmt.Fprintf(s.out, "%s came with a token or password, copied as it is; only you can read the file. "+
			"\"${NAME}\" in its place takes it from the environment\n", terminal.Count(n, "server"))
	}
	return true, nil
}

// connect writes mcpx into the files of the clients that were found, or prints the
// commands that do so.
func (cmd *initCommand) connect(ctx context.Context, w wiring, sources []setup.Source) error {
	own := setup.ReadFile(w.sys, w.cli.Config, w.s.reading()).Servers
	done := map[string]bool{}
	var commands []string
	for _, source := range sources {
		if source.ID == "" || source.Err != nil || done[source.ID] {
			continue
		}
		done[source.ID] = true
		client, err := findClient(source.ID)
		if err != nil {
			return err
		}
		if !w.asker.yes && !w.s.terminal {
			again := "mcpx connect " + client.ID
			if cmd.Move {
				again += " --move"
			}
			commands = append(commands, again)
			continue
		}
		fmt.Fprintf(w.s.out, "\n%s\n", w.s.screen.Bold(client.Name))
		w := w
		if names := w.doubled(client, client.File(w.sys), own); !cmd.Move && !w.asker.yes && len(names) > 0 {
			question := fmt.Sprintf("mcpx serves %s now. Take them out of %s?", strings.Join(names, ", "), client.Name)
			if w.move, err = w.asker.agrees(ctx, question); err != nil {
				return err
			}
		}
		if err := w.connect(ctx, client, client.File(w.sys), ""); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(w.s.err, "mcpx: warning: %s is not connected: %v\n", client.Name, err)
		}
	}
	exe, err := command()
	if err != nil {
		return err
	}
	if len(done) > 0 && len(commands) == 0 {
		fmt.Fprintln(w.s.out, "\nother clients: mcpx connect")
		return nil
	}
	commands = append(commands, "mcpx connect", setup.Snippet(exe, []string{"--config", w.cli.Config}))
	fmt.Fprintf(w.s.out, "\nnow connect a client, or give it the entry by hand, as most of them have it:\n    %s\n",
		strings.Join(commands, "\n    "))
	return nil
}
