package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type tokenCommand struct {
	New    tokenNewCommand    `cmd:"" help:"Make a token for a client, and print it once."`
	Agent  tokenAgentCommand  `cmd:"" help:"Make a token for an agent of the older system (dial.compat), and print it."`
	List   tokenListCommand   `cmd:"" help:"Print the names that have tokens."`
	Delete tokenDeleteCommand `cmd:"" help:"Delete a token."`
}

func (cmd *tokenCommand) Help() string {
	return "Tokens are for clients of mcpx serve --http. The config keeps their names and digests, never the tokens themselves. " +
		"A running mcpx reads a change on SIGHUP, or at once with --watch.\n\n" +
		examples("mcpx token new ci", "mcpx token list", "mcpx token delete ci")
}

type tokenNewCommand struct {
	Name  string   `arg:"" help:"Whose token it is: letters, digits, '.', '_' and '-'."`
	Group []string `env:"-" help:"A group of its owner, for auth.rights." placeholder:"GROUP" sep:"none"`
	Scope []string `env:"-" help:"A scope of its owner, for auth.rights." placeholder:"SCOPE" sep:"none"`
	Force bool     `env:"-" help:"Replace the token that the name has."`
}

func (cmd *tokenNewCommand) Help() string {
	return examples("mcpx token new ci", "mcpx token new alice --group dev", "TOKEN=$(mcpx token new ci --force)")
}

func (cmd *tokenNewCommand) Run(c *cli, s streams) error {
	token, digest := app.NewToken()
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) {
		after, err := setup.SetToken(data, cmd.Name, setup.Token{SHA256: digest, Groups: cmd.Group, Scopes: cmd.Scope}, cmd.Force)
		if err != nil {
			return nil, err
		}
		if cfg, fault := config.Parse("", after, s.reading()); fault == nil && cfg.Auth == nil {
			return nil, errors.New("auth is turned off in the config, so the token would protect nothing")
		}
		return after, nil
	})
	if err != nil {
		if errors.Is(err, setup.ErrHasToken) {
			return &hintError{err.Error(), "--force replaces it, and whoever has it is locked out"}
		}
		return err
	}
	fmt.Fprintf(s.err, "the token of %s, which is not shown again; its digest is in %s. Clients send the header Authorization: Bearer TOKEN.\n", cmd.Name, file)
	fmt.Fprintln(s.out, token)
	return nil
}

type tokenAgentCommand struct {
	ID   string `arg:"" help:"The agent: letters, digits, '.', '_' and '-'."`
	Days int    `env:"-" default:"90" help:"After so many days the token ends."`
}

func (cmd *tokenAgentCommand) Help() string {
	return "The token is signed with dial.compat_key, and is not stored. Whoever has it may connect as the agent: its tool servers at\n" +
		"/mcp_endpoint/mcp/?token=TOKEN, its clients at /mcp_endpoint/call/?token=TOKEN.\n\n" +
		examples("mcpx token agent kitchen", "mcpx token agent kitchen --days 7")
}

func (cmd *tokenAgentCommand) Run(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadConfig(ctx, s)
	if err != nil {
		return err
	}
	if cmd.Days < 1 {
		return &usageError{hintError{"--days must be at least 1", ""}}
	}
	until := time.Now().AddDate(0, 0, cmd.Days)
	token, err := app.NewAgentToken(cfg, cmd.ID, until)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "the token of the agent %s, until %s; another dial.compat_key ends it before\n", cmd.ID, until.Format(time.DateOnly))
	fmt.Fprintln(s.out, token)
	return nil
}

type tokenListCommand struct{}

func (cmd *tokenListCommand) Run(c *cli, s streams) error {
	path, err := c.findConfig(s)
	if err != nil {
		return err
	}
	cfg, err := config.Load(path, s.reading())
	if err != nil {
		return err
	}
	if cfg.Auth == nil || len(cfg.Auth.Tokens) == 0 {
		fmt.Fprintln(s.err, "there are no tokens")
		return nil
	}
	for _, t := range cfg.Auth.Tokens {
		line := t.Name
		if len(t.Groups) > 0 {
			line += "  groups: " + strings.Join(t.Groups, ", ")
		}
		if len(t.Scopes) > 0 {
			line += "  scopes: " + strings.Join(t.Scopes, ", ")
		}
		fmt.Fprintln(s.out, line)
	}
	return nil
}

type tokenDeleteCommand struct {
	Name string `arg:"" help:"Whose token it is."`
}

func (cmd *tokenDeleteCommand) Run(c *cli, s streams) error {
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) { return setup.RemoveToken(data, cmd.Name) })
	if errors.Is(err, setup.ErrNoToken) {
		return &hintError{fmt.Sprintf("%s has no token in %s", cmd.Name, file), "mcpx token list"}
	}
	if err != nil && strings.Contains(err.Error(), "no client could connect") {
		return &hintError{
			"no client could connect without the token of " + cmd.Name,
			"make another one first, or take auth out of " + file + " and start mcpx again",
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "deleted the token of %s from %s\n", cmd.Name, file)
	return nil
}
