package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/results"
	"mcpx/internal/view"
)

type inspectCommand struct {
	Server string `arg:"" optional:"" help:"The server, or SERVER.TOOL; without it, the description that the model sees."`
	Tool   string `arg:"" optional:"" help:"The tool, or several with commas."`
	Query  string `help:"What you want to do, in words." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print structuredContent instead of the text."`
}

// fromDisk is a part of the help of commands that read catalogues, which an earlier mcpx has stored on disk.
const fromDisk = "Starts no server whose catalogue is on disk already; mcpx check reads it anew.\n\n"

func (cmd *inspectCommand) Help() string {
	return fromDisk + examples("mcpx inspect", "mcpx inspect github", "mcpx inspect github create_issue", "mcpx inspect --query 'read a file'")
}

// Run answers in the daemon if one runs, because a server that it starts there stays up. Otherwise it answers in this process.
func (cmd *inspectCommand) Run(ctx context.Context, c *cli, s streams) error {
	switch {
	case cmd.Tool != "" && cmd.Query != "":
		return errors.New("give a tool or --query, not both: a tool is described, a query is searched for")
	case cmd.Tool != "" && cmd.Server == "":
		return errors.New("the tool needs its server: mcpx inspect SERVER TOOL")
	}
	if cmd.Server != "" { // without a server, most answers come from the disk
		if ran, err := c.warm(ctx, s, daemonCommand{command: "inspect", options: cmd}); ran {
			return err
		}
	}
	return cmd.runHere(ctx, c, s)
}

// runHere prints the answer that a model would get from the tool inspect or, without arguments, the description of that tool.
func (cmd *inspectCommand) runHere(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadServers(ctx, s, cmd.Server)
	if err != nil {
		return err
	}
	if server, tool := named(cfg, cmd.Server); server != "" && (tool == "" || cmd.Tool == "" && cmd.Query == "") {
		cmd.Server, cmd.Tool = server, cmp.Or(tool, cmd.Tool)
	}
	a, done, err := c.startOrKeep(s, cfg, app.Look, cmd.Server)
	if err != nil {
		return err
	}
	defer done()
	if installed(ctx, a, s); ctx.Err() != nil {
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, cfg.StartupWait)
	if cmd.Server == "" {
		a.Registry.WaitKnown(bounded, nil)
	} else {
		cmd.find(bounded, a)
	}
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cmd.Server == "" && cmd.Query == "" && !cmd.JSON {
		fmt.Fprintln(s.out, s.screen.Text(a.View.Description()))
		return nil
	}
	result := a.View.Inspect(ctx, nil, view.Query{Server: cmd.Server, Tool: cmd.Tool, Text: cmd.Query}, cmd.JSON)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return printResult(s, result, cmd.JSON)
}

// find waits until the server and the tool can be shown. If the tool is not in the catalogue on disk, which may be out of date,
// find starts the server.
func (cmd *inspectCommand) find(ctx context.Context, a *app.App) {
	if status, ok := a.Registry.Status(cmd.Server); ok && status.State != catalog.Idle {
		a.Registry.Ask(cmd.Server) // the server starts anyway; Ask keeps it up for the next command in the daemon
	}
	a.Registry.WaitServer(ctx, cmd.Server)
	server, ok := a.Registry.Snapshot().Server(cmd.Server)
	if !ok || server.State != catalog.Idle || cmd.Tool == "" {
		return
	}
	if _, there := server.Tool(cmd.Tool); there { // compared as a whole first, because the name of a tool may contain commas
		return
	}
	for name := range strings.SplitSeq(cmd.Tool, ",") {
		if _, there := server.Find(strings.TrimSpace(name)); !there {
			a.Registry.Ask(cmd.Server)
			a.Registry.WaitServer(ctx, cmd.Server)
			return
		}
	}
}

// printResult prints the content blocks of a result: text blocks as plain text, other blocks as JSON. If raw is true, it prints
// structuredContent instead or, if there is none, the whole result as JSON. Control characters from a server are not written to a
// terminal.
func printResult(s streams, r *results.Result, raw bool) error {
	switch {
	case raw && r.Structured != nil:
		fmt.Fprintln(s.out, s.screen.JSON(string(r.Structured)))
	case raw:
		fmt.Fprintln(s.out, s.screen.JSON(string(r.Raw())))
	default:
		for _, block := range r.Content {
			if text := wire.ReadBlock(block); text.IsText {
				fmt.Fprintln(s.out, s.screen.Text(text.Text))
				continue
			}
			fmt.Fprintln(s.out, s.screen.JSON(string(block)))
		}
	}
	if r.IsError {
		return errFailed
	}
	return nil
}
