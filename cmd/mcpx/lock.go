package main

import (
	"context"
	"fmt"
	"slices"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

type lockCommand struct {
	Servers []string `arg:"" optional:"" name:"server" help:"Approve only the tools of these servers."`
	Yes     bool     `help:"Do not ask."`
}

func (cmd *lockCommand) Help() string {
	return "Connects to the servers and stores the definitions of their tools in a file beside the config. If a definition changes later, " +
		"mcpx warns, or hides the tool (pin: block).\n\n" + examples("mcpx lock", "mcpx lock github --yes")
}

// Run approves the tools in the daemon, if one runs, so that a server that sessions share is not started a second time. Otherwise
// it approves them in this process.
func (cmd *lockCommand) Run(ctx context.Context, c *cli, s streams) error {
	if ran, err := c.warm(ctx, s, daemonCommand{command: "lock", options: cmd, reads: !cmd.Yes}); ran {
		return err
	}
	return cmd.runHere(ctx, c, s)
}

// runHere shows the tools that are new, changed or gone, asks, and writes the lock file. It leaves out servers that are
// disabled or do not answer.
func (cmd *lockCommand) runHere(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadServers(ctx, s, slices.Clone(cmd.Servers)...)
	if err != nil {
		return err
	}
	servers, _, err := namedIn(cfg, cmd.Servers)
	if err != nil {
		return err
	}
	lock, err := app.LoadLock(cfg)
	if err != nil {
		return err
	}
	a, err := c.start(s, cfg, app.Command, servers...)
	if err != nil {
		return err
	}
	defer a.Close()
	silent := tryAll(ctx, a, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	differs, approved := false, []*catalog.Server(nil)
	snap := a.Registry.Snapshot()
	for i := range snap.Servers {
		server := &snap.Servers[i]
		if len(servers) > 0 && !slices.Contains(servers, server.Name) || server.State == catalog.Disabled {
			continue
		}
		if silent[server.Name] != "" {
			fmt.Fprint(s.out, s.screen.Hang(server.Name+"  ", "does not answer now; its approved tools stay approved"))
			continue
		}
		differs = cmd.show(lock, server, s) || differs
		if server.State == catalog.Ready {
			approved = append(approved, server)
		}
	}
	if !differs {
		fmt.Fprintln(s.out, "nothing has changed in "+app.LockPath(cfg))
		return nil
	}
	unasked := c.hint(append([]string{"lock", "--yes"}, cmd.Servers...)...)
	yes, err := (&asker{s: s, yes: cmd.Yes}).ask(ctx, "Approve these in "+app.LockPath(cfg)+"?", unasked)
	if err != nil || !yes {
		return err
	}
	err = app.ChangeLock(cfg, func(lock app.Lock) {
		for _, server := range approved {
			lock.Approve(server)
		}
	})
	if err != nil {
		return err
	}
	for _, server := range approved {
		app.KeepDefinitions(cfg, server)
	}
	return nil
}

// show prints how the tools of a server differ from the lock file, and reports whether they do.
func (cmd *lockCommand) show(lock app.Lock, server *catalog.Server, s streams) (differs bool) {
	if server.State != catalog.Ready {
		fmt.Fprint(s.out, s.screen.Hang(server.Name+"  ", "is "+string(server.State)+"; its approved tools stay approved"))
		return false
	}
	added, changed, gone := lock.Changes(server)
	if lock[server.Name] == nil {
		fmt.Fprint(s.out, s.screen.Hang(server.Name+"  ", terminal.Count(len(server.Tools), "tool")))
		return true
	}
	for _, name := range slices.Concat(added, changed) {
		word := s.screen.Green("new      ")
		if slices.Contains(changed, name) {
			word = s.screen.Yellow("changed  ")
		}
		text := server.Name + "." + name
		if tool, _ := server.Tool(name); tool.Description != "" {
			text += ": " + tool.Description
		}
		fmt.Fprint(s.out, s.screen.Hang(word, sanitize.Line(text, 300)))
	}
	for _, name := range gone {
		fmt.Fprint(s.out, s.screen.Hang(s.screen.Dim("gone     "), sanitize.Line(server.Name+"."+name, 300)))
	}
	return len(added)+len(changed)+len(gone) > 0
}
