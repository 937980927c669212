package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"mcpx/internal/desk/attach"
)

// daemonCommand is a command that runs in the daemon if possible, because the servers that the command needs may run there already.
type daemonCommand struct {
	command string
	options any  // the flags and arguments of the command
	reads   bool // the command reads the input
	start   bool // a daemon is started if none runs, unless the variable CI is set
}

type statusCommand struct {
	JSON bool `name:"json" help:"Print it as JSON."`
}

func (cmd *statusCommand) Help() string { return examples("mcpx status", "mcpx status --json") }

// Run prints what the daemon does, or that none runs.
func (cmd *statusCommand) Run(ctx context.Context, c *cli, s streams) error {
	err := c.ask(ctx, s, "status", cmd)
	if errors.Is(err, attach.ErrNone) && cmd.JSON {
		_, err = fmt.Fprintln(s.out, `{"running":false}`)
		return err
	}
	return withoutDaemon(s, c, err)
}

// withoutDaemon returns err. But if err says that no daemon runs, withoutDaemon tells the user so and returns nil, because that is
// no failure.
func withoutDaemon(s streams, c *cli, err error) error {
	if errors.Is(err, attach.ErrNone) {
		_, err = fmt.Fprintln(s.out, "no daemon runs for", c.Config)
	}
	return err
}

type logsCommand struct {
	Server string `arg:"" optional:"" help:"Only the lines about this server."`
	Follow bool   `short:"f" help:"Go on with new lines until Ctrl-C."`
}

func (cmd *logsCommand) Help() string {
	return "The lines of sessions over stdio and of mcpx exec. They include what servers that sessions share write to stderr; with \"log_level\": \"debug\", what all servers write there.\n\n" +
		examples("mcpx logs", "mcpx logs github -f")
}

// Run prints the newest lines that the daemon keeps and, with --follow, further lines as they come.
func (cmd *logsCommand) Run(ctx context.Context, c *cli, s streams) error {
	return withoutDaemon(s, c, c.ask(ctx, s, "logs", cmd))
}

type restartCommand struct {
	Server string `arg:"" help:"The server."`
}

func (cmd *restartCommand) Help() string { return examples("mcpx restart github") }

// Run restarts a server in all sessions that use it.
func (cmd *restartCommand) Run(ctx context.Context, c *cli, s streams) error {
	return withoutDaemon(s, c, c.ask(ctx, s, "restart", cmd))
}

type stopCommand struct{}

func (cmd *stopCommand) Help() string {
	return "The next session, or mcpx exec, starts another daemon.\n\n" + examples("mcpx stop")
}

// Run ends the daemon and returns when it has ended.
func (cmd *stopCommand) Run(ctx context.Context, c *cli, s streams) error {
	err := c.ask(ctx, s, "stop", cmd)
	if err == nil {
		err = c.gone(ctx)
	}
	return withoutDaemon(s, c, err)
}

//go:embed skill.md
var skill string

type skillCommand struct{}

func (cmd *skillCommand) Help() string {
	return examples("mcpx skill > .claude/skills/mcpx/SKILL.md")
}

// Run prints the SKILL.md.
func (cmd *skillCommand) Run(s streams) error {
	_, err := fmt.Fprint(s.out, skill)
	return err
}
