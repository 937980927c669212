package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type initCommand struct {
	Yes     bool     `short:"y" help:"Write without asking."`
	Move    bool     `help:"Remove the servers that mcpx serves from the clients' files."`
	From    []string `help:"Take the servers of this file, instead of looking for the files of clients. May be repeated." placeholder:"FILE" sep:"none" type:"path"`
	NoCheck bool     `help:"Do not try the servers."`
	Keyring bool     `env:"MCPX_INIT_KEYRING" help:"Move tokens and passwords that the config has in plain text to the keyring of this system."`
	Undo    bool     `help:"Bring the config back as it was before mcpx init, and remove the schema beside it."`
}

func (cmd *initCommand) Help() string {
	return `Finds the servers that your MCP clients have, writes them into the config of mcpx, tries them, and connects the clients.
An existing config keeps its content and gets the servers that it does not have. Beside it, init writes config.schema.json, with which
editors complete the keys and show mistakes. "mcpx init --undo" undoes the changes of the config, "mcpx disconnect" those of a client.

` + examples("mcpx init", "mcpx init --yes --move --keyring", "mcpx init --from .mcp.json --from ~/.codex/config.toml", "mcpx init --undo")
}

func (cmd *initCommand) Run(ctx context.Context, c *cli, s streams, sys setup.System) error {
	file, err := c.configFile()
	if err != nil {
		return err
	}
	w := wiring{cli: c, s: s, sys: sys, asker: &asker{s: s, yes: cmd.Yes}, move: cmd.Move}
	if cmd.Undo {
		return w.undoInit(ctx, file)
	}
	sources, err := cmd.sources(sys, s)
	if err != nil {
		return err
	}
	next, err := draftOf(file)
	if err != nil {
		return err
	}
	var have []setup.Found
	if next.existed {
		have = setup.ReadConfig(file, s.readingSecrets(ctx)).Servers
	}
	var skipped []setup.Skipped
	next.servers, skipped = setup.Merge(sys, have, sources)
	cmd.show(w, sources, next.servers, skipped)
	if len(next.servers) == 0 && !next.existed {
		return &hintError{
			"no servers were found in the files of MCP clients",
			"add one: " + c.hint("find", "WORD") + ", then " + c.hint("add", "NAME") + "; or " + c.hint("add", "NAME", "--", "COMMAND") +
				", or " + c.hint("add", "NAME", "URL") + "; mcpx demo needs none",
		}
	}
	unread := unreadable(sys, sources)
	if len(next.servers) == 0 && !setup.Blank(next.before) {
		fmt.Fprintf(s.out, "%s has %s\n", sys.Short(file), map[bool]string{true: "all of them", false: "all that could be read"}[len(unread) == 0])
	}
	if written, err := cmd.write(ctx, w, next); err != nil || !written && len(next.servers) > 0 {
		return err
	}
	if err := cmd.try(ctx, w, sources, file); err != nil {
		return err
	}
	if len(unread) > 0 {
		return &hintError{
			"cannot be read, so their servers were not taken: " + strings.Join(unread, ", "),
			"make them valid and run again: " + cmd.again(c, false),
		}
	}
	return nil
}

// try checks the servers of the new config, unless --no-check is set, and connects the clients. If it has checked the servers,
// it prints what mcpx saves and costs.
func (cmd *initCommand) try(ctx context.Context, w wiring, sources []setup.Source, file string) error {
	named := *w.cli
	named.Config = file
	check := &checkCommand{within: w.cli}
	if !cmd.NoCheck {
		fmt.Fprintln(w.s.out)
		// The clients are connected even if a server is unavailable.
		if err := check.runHere(ctx, &named, w.s); err != nil && !errors.Is(err, errFailed) {
			return err
		}
		w.checked = check.states()
	}
	if err := cmd.connect(ctx, w, sources, file); err != nil {
		return err
	}
	if check.outcome != nil {
		check.outcome.printFigures(w.s)
	}
	return nil
}

// unreadable returns the source files that cannot be read.
func unreadable(sys setup.System, sources []setup.Source) (files []string) {
	for _, source := range sources {
		if source.Err != nil {
			files = append(files, sys.Short(source.File))
		}
	}
	return files
}

// sources reads the files from which init may take servers.
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
		case !source.Exists:
			return nil, fmt.Errorf("%s: there is no such file", file)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// show prints three lists: the files that were found (sources), the servers that init will add to the config (merged), and the
// servers that it will not add, with the reason (skipped).
func (cmd *initCommand) show(w wiring, sources []setup.Source, merged []setup.Merged, skipped []setup.Skipped) {
	s, sys := w.s, w.sys
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
		if len(source.NotTaken) > 0 {
			row.Notes = append(row.Notes, "not taken, as only servers are: "+strings.Join(source.NotTaken, ", ")+"; write them into the config of mcpx")
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
		fmt.Fprintf(s.out, "not read, as they belong to this folder's project: %s (%s takes one)\n\n",
			strings.Join(files, ", "), w.cli.hint("init", "--from", "FILE"))
	}
}

// draft is a config with servers to add.
type draft struct {
	file    string
	before  []byte         // the text of the file now
	existed bool           // the file exists
	servers []setup.Merged // the servers to add
}

// draftOf returns a draft with the present text of the config in file, and without servers. The file need not exist.
func draftOf(file string) (next draft, err error) {
	next = draft{file: file}
	next.before, next.existed, err = config.Read(file)
	return next, err
}

// write creates the config, or adds the servers to an existing one after making a backup. It also moves secrets to the keyring
// (see seal), and writes the config's JSON schema into the same folder. It returns false if it writes nothing: the user
// declines, or there is nothing to add and nobody to ask.
func (cmd *initCommand) write(ctx context.Context, w wiring, next draft) (bool, error) {
	s, sys := w.s, w.sys
	if len(next.servers) == 0 && !setup.Blank(next.before) && !w.asker.yes && !cmd.Keyring && !s.terminal {
		return false, nil // the only change would be "$schema", and mcpx cannot ask the user about it
	}
	data, question, err := next.text(sys)
	if err == nil {
		_, err = config.Parse(next.file, data, s.reading())
	}
	if err != nil {
		return false, s.configAt(next.file).WhyNot(next.before, err)
	}
	data, secrets, err := cmd.seal(ctx, w, next.file, data)
	if err != nil {
		return false, err
	}
	kept, err := backups()
	if err != nil {
		return false, err
	}
	change := kept.Edit(next.file, next.before, data, next.existed)
	if !change.Nothing() {
		if err := kept.Check(next.file); err != nil { // before the secrets are stored
			return false, err
		}
		if ok, err := w.asker.ask(ctx, question, cmd.again(w.cli, true)); err != nil || !ok {
			return false, err
		}
		backup, err := writeWith(ctx, kept, change, secrets)
		if err != nil {
			return false, err
		}
		if backup != "" {
			fmt.Fprintf(s.out, "the config as it was: %s\n", sys.Short(backup))
		}
		fmt.Fprintf(s.out, "wrote %s\n", sys.Short(next.file))
		if len(secrets) > 0 {
			fmt.Fprintf(s.out, "moved to the keyring: %s; the files of the clients and the copies of files still have them\n", secretNames(secrets))
		}
	}
	if file, err := setup.WriteSchema(next.file); err != nil {
		fmt.Fprintf(s.err, "mcpx: warning: %v\n", err)
	} else {
		fmt.Fprintf(s.out, "wrote %s, from which editors know the keys; undo: %s\n", sys.Short(file), w.cli.hint("init", "--undo"))
	}
	if n := setup.Secrets(next.servers); n > 0 && len(secrets) == 0 {
		move := w.cli.hint("init", "--keyring") + " moves it to the keyring of this system; "
		if cmd.Keyring || s.terminal && !w.asker.yes && app.Secrets().Works(ctx) != nil { // Works may ask for a password
			move = ""
		}
		fmt.Fprintf(s.out, "%s came with a token or password in plain text; only you can read the file. "+
			"%s\"${NAME}\" takes it from the environment\n", terminal.Count(n, "server"), move)
	}
	return true, nil
}

// writeWith stores the secrets that the new text names in the keyring, and then makes the change, as [setup.Backups.Write] does. If
// the file does not get the text, the keyring gets back what it had.
func writeWith(ctx context.Context, kept setup.Backups, change setup.Change, secrets []setup.Secret) (backup string, err error) {
	undo, err := app.KeepSecrets(ctx, secrets)
	if err != nil {
		return "", fmt.Errorf("nothing was written: %w", err)
	}
	if backup, err = kept.Write(change); err != nil {
		// Write also returns an error if it has changed the file, but could not store its record of the change. Then undo must not
		// run.
		if now, _, _ := config.Read(change.File); !bytes.Equal(now, change.After) {
			undo()
		}
	}
	return backup, err
}

// again returns the command line of this mcpx init for hints, with the flags that the user gave. yes adds the flag --yes.
func (cmd *initCommand) again(c *cli, yes bool) string {
	words := []string{"init"}
	if yes || cmd.Yes {
		words = append(words, "--yes")
	}
	if cmd.Move {
		words = append(words, "--move")
	}
	if cmd.Keyring {
		words = append(words, "--keyring")
	}
	if cmd.NoCheck {
		words = append(words, "--no-check")
	}
	for _, from := range cmd.From {
		words = append(words, "--from", from)
	}
	return c.hint(words...)
}

// seal offers to move the credentials in the text of the config to the keyring. If the user agrees, or has set --keyring, it
// returns the text with references in their place, and the secrets to store. If it cannot ask, or there is no keyring to use,
// it returns the text unchanged; with --keyring, a missing keyring is an error. It writes nothing itself.
func (cmd *initCommand) seal(ctx context.Context, w wiring, file string, data []byte) ([]byte, []setup.Secret, error) {
	if !cmd.Keyring && (w.asker.yes || !w.s.terminal) {
		return data, nil, nil
	}
	store := app.Secrets()
	names, err := store.Names()
	if err != nil {
		return nil, nil, err
	}
	sealed, err := setup.Seal(file, data, w.s.reading(), func(name string) (string, bool) {
		value, err := store.Get(ctx, name)
		return value, err == nil || slices.Contains(names, name)
	}, store.MaxSealed())
	if err != nil || len(sealed.Secrets)+len(sealed.Left) == 0 {
		return data, nil, err
	}
	if why := store.Works(ctx); why != nil {
		if cmd.Keyring {
			err = &hintError{fmt.Sprintf("nothing was written: there is no keyring to move secrets to: %v", why),
				`leave --keyring out, and write "${NAME}" or "${file:PATH}" in the config`}
		}
		return data, nil, err
	}
	if len(sealed.Left) > 0 {
		fmt.Fprintf(w.s.err, "mcpx: warning: too large for the keyring of this system, and left in the config: %s; "+
			"\"${file:PATH}\" takes it from a file\n", strings.Join(sealed.Left, ", "))
	}
	if len(sealed.Secrets) == 0 {
		return data, nil, nil
	}
	if !cmd.Keyring {
		question := fmt.Sprintf("%s a token or password in plain text. Move them to the keyring of this system (%s)?",
			map[bool]string{true: "1 server has", false: fmt.Sprint(sealed.Servers) + " servers have"}[sealed.Servers == 1],
			secretNames(sealed.Secrets))
		if ok, err := w.asker.agrees(ctx, question); err != nil || !ok {
			return data, nil, err
		}
	}
	return sealed.Text, sealed.Secrets, nil
}

func secretNames(secrets []setup.Secret) string {
	names := make([]string, len(secrets))
	for i, one := range secrets {
		names[i] = one.Name
	}
	return strings.Join(names, ", ")
}

// text returns the new text of the config, and the question that asks the user whether to write it.
func (next draft) text(sys setup.System) (data []byte, question string, err error) {
	file, servers := sys.Short(next.file), terminal.Count(len(next.servers), "server")
	switch {
	case setup.Blank(next.before):
		question = fmt.Sprintf("Write %s with %s?", file, servers)
		data, err = setup.NewConfig(next.before, next.servers)
	case len(next.servers) == 0:
		question, data = fmt.Sprintf("Name the schema in %s?", file), next.before
	default:
		question = fmt.Sprintf("Add %s to %s?", servers, file)
		data, err = setup.AddToConfig(next.before, next.servers)
	}
	if err == nil {
		data, err = setup.NameSchema(next.file, data)
	}
	return data, question, err
}

// undoInit undoes the changes of init in the config, and removes the schema.
func (w wiring) undoInit(ctx context.Context, file string) error {
	s, sys := w.s, w.sys
	kept, err := backups()
	if err != nil {
		return err
	}
	change, err := kept.Restore(file)
	if err != nil {
		return err
	}
	if !change.Nothing() {
		if ok, err := w.asker.askFor(ctx, change, sys, w.cli.hint("init", "--undo", "--yes")); err != nil || !ok {
			return err
		}
		backup, err := kept.Undo(change)
		if err != nil {
			return err
		}
		s.unrecorded(change)
		switch {
		case change.Gone:
			fmt.Fprintf(s.out, "%s is gone, as before\n", sys.Short(file))
		case change.Exact:
			fmt.Fprintf(s.out, "%s is what it was before, byte for byte\n", sys.Short(file))
		default:
			fmt.Fprintf(s.out, "%s names no schema any more; the rest stays, as the file has changed since mcpx init. As it was a moment ago: %s\n",
				sys.Short(file), sys.Short(backup))
		}
		w.warnConnected(file)
	}
	switch removed, err := setup.RemoveSchema(file); {
	case err != nil:
		return err
	case !removed && change.Nothing():
		fmt.Fprintf(s.out, "mcpx init has written nothing to %s\n", sys.Short(file))
	}
	return nil
}

// warnConnected names the clients that start mcpx with this config file, because mcpx init --undo leaves them connected. Clients
// whose servers were moved to mcpx have no servers once the config is gone.
func (w wiring) warnConnected(file string) {
	for _, client := range setup.Clients() {
		servers, _ := client.Servers(client.File(w.sys), w.s.reading()) // servers is empty after an error
		if slices.ContainsFunc(servers, func(f setup.Found) bool { return f.Uses(file) }) {
			fmt.Fprintf(w.s.out, "%s still starts mcpx with this config; to undo that too: mcpx disconnect %s\n", client.Name, client.ID)
		}
	}
}

// connect adds mcpx to the config files of the clients that were found, and asks before each. Without a terminal and without
// --yes, it only prints the commands that do so.
func (cmd *initCommand) connect(ctx context.Context, w wiring, sources []setup.Source, file string) error {
	_, seen, err := w.served(ctx, file)
	if err != nil {
		return err
	}
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
			again := []string{"connect", client.ID}
			if cmd.Move {
				again = append(again, "--move")
			}
			commands = append(commands, w.cli.hint(again...))
			continue
		}
		fmt.Fprintf(w.s.out, "\n%s\n", w.s.screen.Bold(client.Name))
		w := w
		if names := w.doubled(client, client.File(w.sys), seen); !cmd.Move && !w.asker.yes && len(names) > 0 {
			question := fmt.Sprintf("mcpx serves %s now. Take %s out of %s?", strings.Join(names, ", "), them(names), client.Name)
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
		fmt.Fprintln(w.s.out, "\nother clients: "+w.cli.hint("connect"))
		return nil
	}
	commands = append(commands, w.cli.hint("connect"), setup.Snippet(exe, []string{"--config", file}))
	fmt.Fprintf(w.s.out, "\nnow connect a client, or give it the entry by hand, as most of them have it:\n    %s\n",
		strings.Join(commands, "\n    "))
	return nil
}
