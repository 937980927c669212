package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type connectCommand struct {
	Client string `arg:"" optional:"" help:"The client; without it, all clients are listed."`
	Yes    bool   `short:"y" help:"Write without asking."`
	Move   bool   `help:"Remove the servers that mcpx serves from the client's file."`
	File   string `help:"The client's file, if not the usual one, for example a project's file." placeholder:"FILE" type:"path"`
}

func (cmd *connectCommand) Help() string {
	return `Shows the change of the client's file, asks, keeps a backup and writes. Comments and format of the file stay.
"mcpx disconnect" brings the same bytes back or, if the file has changed since, only removes the entry of mcpx.

` + examples(
		"mcpx connect",
		"mcpx connect cursor",
		"mcpx connect claude-code --move --yes",
		"mcpx connect claude-code --file .mcp.json --move",
	)
}

func (cmd *connectCommand) Run(ctx context.Context, c *cli, s streams, sys setup.System) error {
	if cmd.Client == "" {
		return cmd.list(sys, s)
	}
	client, err := findClient(cmd.Client)
	if err != nil {
		return err
	}
	file, unasked := cmp.Or(cmd.File, client.File(sys)), []string{"connect", client.ID, "--yes"}
	if cmd.Move {
		unasked = append(unasked, "--move")
	}
	unasked = append(unasked, fileFlag(sys, client, file)...)
	w := wiring{cli: c, s: s, sys: sys, asker: &asker{s: s, yes: cmd.Yes}, move: cmd.Move}
	return w.connect(ctx, client, file, c.hint(unasked...))
}

type disconnectCommand struct {
	Client string `arg:"" help:"The client."`
	Yes    bool   `short:"y" help:"Write without asking."`
	File   string `help:"The client's file, if not the usual one." placeholder:"FILE" type:"path"`
}

func (cmd *disconnectCommand) Help() string {
	return `Brings back the client's file as it was before "mcpx connect", byte for byte. If the file has changed since, this only removes
the entry of mcpx and puts back the servers that were moved.

` + examples("mcpx disconnect cursor", "mcpx disconnect claude-code --yes")
}

func (cmd *disconnectCommand) Run(ctx context.Context, s streams, sys setup.System) error {
	client, err := findClient(cmd.Client)
	if err != nil {
		return err
	}
	if client.Paste != "" {
		fmt.Fprintf(s.out, "mcpx writes no file of %s: take mcpx out in %s\n", client.Name, client.Paste)
		return nil
	}
	file := cmp.Or(cmd.File, client.File(sys))
	unasked := append([]string{"mcpx", "disconnect", client.ID, "--yes"}, fileFlag(sys, client, file)...)
	a, undone := &asker{s: s, yes: cmd.Yes}, false
	for _, part := range partsOf(sys, client, file) {
		done, err := part.disconnect(ctx, a, sys, terminal.CommandLine(unasked...))
		if undone = undone || done; err != nil {
			return err
		}
	}
	if !undone {
		fmt.Fprintf(s.out, "mcpx is not in %s\n", sys.Short(file))
	}
	return nil
}

// part is one config file of a client, together with the [setup.Client] that knows how to edit this file.
type part struct {
	setup.Client
	file string
}

// partsOf returns the files that mcpx connect and mcpx disconnect edit. The first one is file. If file is the client's usual config
// file, the client's other config files follow.
func partsOf(sys setup.System, client setup.Client, file string) []part {
	parts := []part{{client.Editing(sys, file), file}}
	if file == client.File(sys) {
		for _, other := range client.Others {
			parts = append(parts, part{other, other.File(sys)})
		}
	}
	return parts
}

// disconnect undoes mcpx's changes of a file. It returns true if the file has changes by mcpx, even if the user decides to keep
// them.
func (p part) disconnect(ctx context.Context, a *asker, sys setup.System, unasked string) (bool, error) {
	kept, err := backups()
	if err != nil {
		return false, err
	}
	change, err := kept.Disconnect(p.Client, p.file, a.s.reading())
	if err != nil || change.Nothing() {
		return false, err
	}
	if ok, err := a.askFor(ctx, change, sys, unasked); err != nil || !ok {
		return true, err
	}
	backup, err := kept.Undo(change)
	if err != nil {
		return true, err
	}
	a.s.unrecorded(change)
	fmt.Fprintf(a.s.out, "disconnected %s: %s\n", p.Name, p.Restart)
	if change.Exact {
		fmt.Fprintln(a.s.out, "the file is what it was before, byte for byte")
		return true, nil
	}
	back := ""
	if len(change.Restored) > 0 {
		back = ", and put back " + strings.Join(change.Restored, ", ")
	}
	fmt.Fprintf(a.s.out, "took out mcpx%s; the rest stays. As it was a moment ago: %s\n",
		back, sys.Short(backup))
	return true, nil
}

// unrecorded is called after earlier changes of a file were undone. If mcpx could not read its records of the files that it has
// changed, and so worked without them, unrecorded warns the user.
func (s streams) unrecorded(change setup.Change) {
	if change.Unrecorded != nil {
		fmt.Fprintf(s.err, "mcpx: warning: %v\n", change.Unrecorded)
	}
}

func findClient(id string) (setup.Client, error) {
	var ids []string
	for _, c := range setup.Clients() {
		if strings.EqualFold(c.ID, id) {
			return c, nil
		}
		ids = append(ids, c.ID)
	}
	return setup.Client{}, &usageError{hintError{
		fmt.Sprintf("there is no client %q", id) + sanitize.DidYouMean(id, ids),
		"the clients are " + strings.Join(ids, ", "),
	}}
}

// list prints all clients with their config files, and whether mcpx is in them.
func (cmd *connectCommand) list(sys setup.System, s streams) error {
	rows := []terminal.Row{{Cells: []string{"CLIENT", "STATE", "FILE"}}}
	for _, client := range setup.Clients() {
		file, state := client.File(sys), "no file"
		if _, existed, err := setup.Read(file); client.Paste != "" {
			file, state = client.Paste, "by hand"
		} else if err != nil || existed {
			state = clientState(client, file, s)
		}
		rows = append(rows, terminal.Row{Cells: []string{client.ID, state, sys.Short(file)}})
	}
	fmt.Fprint(s.out, s.screen.Table(3, rows))
	return nil
}

func clientState(client setup.Client, file string, s streams) string {
	servers, err := client.Servers(file, s.reading())
	if err != nil {
		return "cannot be read"
	}
	state := terminal.Count(len(servers), "server")
	for _, one := range servers {
		if one.Self {
			return "connected; " + terminal.Count(len(servers)-1, "other server")
		}
	}
	return state
}

// wiring has what connect and init need to write mcpx into the config files of clients.
type wiring struct {
	cli   *cli
	s     streams
	sys   setup.System
	asker *asker
	move  bool
	// checked has the server states that a check in this process has just found; nil if there was no check.
	checked map[string]catalog.State
}

// served returns all servers of mcpx's config, and those that have worked with mcpx. Only servers that have worked may be removed
// from a client's file. A server has worked if its catalogue is on disk and, if there was a check, the check found it ready or
// idle.
func (w wiring) served(ctx context.Context, file string) (all, worked []setup.Found, err error) {
	cfg, err := readConfig(ctx, file, w.s)
	if err != nil {
		return nil, nil, err
	}
	a, err := app.New(app.Options{Config: cfg, Profile: app.Command, Log: w.cli.logger(w.s, "error", cfg.LogFormat)})
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	all = setup.ReadConfig(file, w.s.readingSecrets(ctx)).Servers
	for _, one := range all {
		server, ok := a.Registry.Snapshot().Server(cfg.Served(one.Name))
		if !ok || !server.Known {
			continue
		}
		if state := w.checked[server.Name]; w.checked == nil || state == catalog.Ready || state == catalog.Idle {
			worked = append(worked, one)
		}
	}
	return all, worked, nil
}

// connect plans the changes of a client's files, shows each to the user, and writes it if the user agrees. unasked is the
// command that makes the changes without a question. If mcpx cannot write the client's settings, connect only prints what the
// user must paste there.
func (w wiring) connect(ctx context.Context, client setup.Client, file, unasked string) error {
	exe, err := command()
	if err != nil {
		return err
	}
	own, err := w.cli.configFile()
	if err != nil {
		return err
	}
	to := setup.Connection{Command: exe, Args: []string{"--config", own}, Variables: w.s.variables(own)}
	if client.Paste != "" {
		fmt.Fprintf(w.s.out, "mcpx writes no file of %s. In %s add a server with this JSON:\n\n%s\n",
			client.Name, client.Paste, client.Snippet(exe, to.Args))
		return nil
	}
	if file == "" {
		return &hintError{"there is no home folder", "name the file of " + client.Name + " with --file"}
	}
	var served, seen []setup.Found
	if _, existed, err := config.Read(own); err != nil {
		return err
	} else if !existed {
		fmt.Fprintf(w.s.err, "mcpx: warning: there is no config at %s yet; %s makes one\n", w.sys.Short(own), w.cli.hint("init"))
	} else if served, seen, err = w.served(ctx, own); err != nil {
		return err
	}
	if w.move {
		to.Move = seen
	}
	wrote := false
	for _, part := range partsOf(w.sys, client, file) {
		if part.file != file && !w.move {
			continue // from the other files, connect only removes servers, and only with --move
		}
		change, err := w.plan(part, own, to)
		if err != nil {
			return err
		}
		if change.Nothing() {
			continue
		}
		if ok, err := w.asker.askFor(ctx, change, w.sys, unasked); err != nil || !ok {
			return err
		}
		if err := w.write(change); err != nil {
			return err
		}
		wrote = true
	}
	if wrote {
		undo := append([]string{"mcpx", "disconnect", client.ID}, fileFlag(w.sys, client, file)...)
		fmt.Fprintf(w.s.out, "undo: %s\n", terminal.CommandLine(undo...))
	} else {
		fmt.Fprintf(w.s.out, "%s is connected already, in %s\n", client.Name, w.sys.Short(file))
	}
	w.warnDoubled(client, file, served, seen)
	return nil
}

// fileFlag returns the flag --file for a command about this file, or nil if it is the client's usual one.
func fileFlag(sys setup.System, client setup.Client, file string) []string {
	if file == client.File(sys) {
		return nil
	}
	return []string{"--file", file}
}

// plan returns the change of one file. own is the path of mcpx's config.
func (w wiring) plan(p part, own string, to setup.Connection) (setup.Change, error) {
	if p.file == own || sameFile(p.file, own) {
		return setup.Change{}, &hintError{
			fmt.Sprintf("%s is the file of %s and the config of mcpx, which needs one of its own", w.sys.Short(own), p.Name),
			"make one of the same servers: mcpx init --from " + terminal.CommandLine(own),
		}
	}
	kept, err := backups()
	if err != nil {
		return setup.Change{}, err
	}
	change, err := kept.Connect(p.Client, p.file, to, w.s.reading())
	if errors.Is(err, setup.ErrUnsafe) {
		hint := "take the servers out by hand"
		if text := p.Snippet(to.Command, to.Args); text != "" {
			hint = "give the file this by hand:\n" + text
		}
		err = &hintError{err.Error(), hint}
	}
	return change, err
}

// write makes a change of one file, after the user has agreed.
func (w wiring) write(change setup.Change) error {
	kept, err := backups()
	if err != nil {
		return err
	}
	backup, err := kept.Write(change)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.s.out, "connected %s: %s\n", change.Client.Name, change.Client.Restart)
	if backup != "" {
		fmt.Fprintf(w.s.out, "the file as it was: %s\n", w.sys.Short(backup))
	}
	return nil
}

// servers returns the servers in the client's files. A file that cannot be read has none.
func (w wiring) servers(client setup.Client, file string) (all []setup.Found) {
	for _, part := range partsOf(w.sys, client, file) {
		servers, _ := part.Servers(part.file, w.s.reading())
		all = append(all, servers...)
	}
	return all
}

// doubled returns the names of the servers in list that the client also starts by itself.
func (w wiring) doubled(client setup.Client, file string, list []setup.Found) []string {
	return setup.Doubled(w.servers(client, file), list)
}

// warnDoubled tells the user about the servers that the client still starts itself, beside mcpx. A server in worked can be
// removed from the client's file. A server that is only in served, the list of all servers in mcpx's config, has not worked
// with mcpx yet. If a server of the client is in neither list, mcpx's config has no enabled server with the same definition.
func (w wiring) warnDoubled(client setup.Client, file string, served, worked []setup.Found) {
	take := w.doubled(client, file, worked)
	if len(take) > 0 {
		move := append([]string{"connect", client.ID, "--move"}, fileFlag(w.sys, client, file)...)
		fmt.Fprintf(w.s.out, "%s still has %s itself, beside mcpx; to take %s out: %s\n",
			client.Name, strings.Join(take, ", "), them(take), w.cli.hint(move...))
	}
	keep := slices.DeleteFunc(w.doubled(client, file, served), func(name string) bool { return slices.Contains(take, name) })
	if len(keep) > 0 {
		fmt.Fprintf(w.s.out, "%s keeps %s: mcpx was not seen to serve %s; %s says why\n",
			client.Name, strings.Join(keep, ", "), them(keep), w.cli.hint("check"))
	}
	var others []string
	for _, one := range w.servers(client, file) {
		if !one.Self && !slices.Contains(take, one.Name) && !slices.Contains(keep, one.Name) {
			others = append(others, one.Name)
		}
	}
	if len(others) > 0 && len(served) > 0 {
		fmt.Fprintf(w.s.out, "%s keeps %s: mcpx has no enabled server with the same definition\n", client.Name, strings.Join(others, ", "))
	}
}

// them returns "it" or "them", depending on the number of servers.
func them(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "them"
}
