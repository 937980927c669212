package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

type tokenCommand struct {
	New    tokenNewCommand    `cmd:"" help:"Make a token for a client, and print it once."`
	Agent  tokenAgentCommand  `cmd:"" help:"Make a token for an agent of the older system (dial.compat), and print it."`
	List   tokenListCommand   `cmd:"" help:"Print the tokens: names, IDs, ends."`
	Delete tokenDeleteCommand `cmd:"" help:"Delete the tokens of a name, or one of them."`
}

func (cmd *tokenCommand) Help() string {
	return "Tokens are for clients of mcpx serve --http. The config keeps their names and digests, never the tokens themselves. " +
		"A running mcpx reads a change on SIGHUP, or at once with --watch.\n\n" +
		examples("mcpx token new ci", "mcpx token list", "mcpx token delete ci", "mcpx token delete ci 7f3ab2c1")
}

type tokenNewCommand struct {
	Name    string   `arg:"" help:"Whose token it is: letters, digits, '.', '_' and '-'."`
	Group   []string `env:"MCPX_TOKEN_GROUP" help:"A group of its owner, for auth.rights." placeholder:"GROUP" sep:"none"`
	Scope   []string `env:"MCPX_TOKEN_SCOPE" help:"A scope of its owner, for auth.rights." placeholder:"SCOPE" sep:"none"`
	Expires string   `env:"MCPX_TOKEN_EXPIRES" help:"When it ends: after 90d, 12h, or on a day, 2027-01-31." placeholder:"WHEN"`
	Force   bool     `env:"MCPX_TOKEN_FORCE" help:"Delete the other tokens of the name."`
}

func (cmd *tokenNewCommand) Help() string {
	return "A name may have several tokens, so that a new one can be in use before the old one is deleted. Without --group and --scope a further " +
		"token has the groups and scopes of the first.\n\n" +
		examples("mcpx token new ci --expires 90d", "mcpx token new alice --group dev", "TOKEN=$(mcpx token new ci --force)")
}

func (cmd *tokenNewCommand) Run(c *cli, s streams) error {
	expires, err := endOf(cmd.Expires, time.Now())
	if err != nil {
		return err
	}
	if name, _, further := strings.Cut(cmd.Name, "/"); further { // else it would be a token of the principal before the slash
		return &usageError{hintError{"the name of a token has no /: " + cmd.Name, "a further token of " + name + ": " + c.hint("token", "new", name)}}
	}
	token, digest := app.NewToken()
	s.absent = true
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) {
		if setup.Blank(data) { // a config without servers is valid, because they may be added later
			data = []byte("{\n  \"mcpServers\": {}\n}\n")
		}
		token := setup.Token{SHA256: digest, Groups: cmd.Group, Scopes: cmd.Scope, Expires: expires}
		after, err := setup.SetToken(data, cmd.Name, token, cmd.Force)
		if err != nil {
			return nil, err
		}
		if cfg, fault := config.Parse("", after, s.reading()); fault == nil && cfg.Auth == nil {
			return nil, errors.New("auth is turned off in the config, so the token would protect nothing")
		}
		return after, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "the token of %s, which is not shown again; its digest is in %s. Clients send the header Authorization: Bearer TOKEN.\n", cmd.Name, file)
	if cfg, err := config.Load(file, s.reading()); err == nil && cfg.Auth != nil {
		if n := len(tokensOf(cfg, cmd.Name)); n > 1 {
			fmt.Fprintf(s.err, "%s has %d tokens now: %s shows them, %s deletes one\n", cmd.Name, n,
				c.hint("token", "list"), c.hint("token", "delete", cmd.Name, "ID"))
		}
	}
	fmt.Fprintln(s.out, token)
	return nil
}

func tokensOf(cfg *config.Config, name string) (own []conf.Token) {
	for _, t := range cfg.Auth.Tokens {
		if t.Name == name {
			own = append(own, t)
		}
	}
	return own
}

// endOf returns when a token ends, in the form in which the config has it; empty means never. text is what the user gave: a time,
// or how long the token is valid from now on. Empty text means that the token does not end.
func endOf(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	ends, err := time.Parse(time.DateOnly, text)
	if days, isDays := strings.CutSuffix(text, "d"); err != nil && isDays {
		n, notNumber := strconv.Atoi(days)
		if err = notNumber; err == nil && n < 36500 {
			ends = now.AddDate(0, 0, n)
		}
	} else if err != nil {
		var after time.Duration
		if after, err = time.ParseDuration(text); err == nil {
			ends = now.Add(after)
		}
	}
	if err != nil || !ends.After(now) {
		return "", &usageError{hintError{"--expires must be a time to come, such as 90d, 12h or 2027-01-31: " + text, ""}}
	}
	return ends.UTC().Format(time.RFC3339), nil
}

type tokenAgentCommand struct {
	ID   string `arg:"" help:"The agent: letters, digits, '.', '_' and '-'."`
	Days int    `env:"MCPX_TOKEN_DAYS" default:"90" help:"After so many days the token ends."`
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
	s.absent = true
	cfg, err := config.Load(path, s.reading())
	if err != nil {
		return err
	}
	if cfg.Auth == nil || len(cfg.Auth.Tokens) == 0 {
		fmt.Fprintln(s.err, "there are no tokens")
		return nil
	}
	for _, t := range cfg.Auth.Tokens {
		line := t.Name + "  " + t.ID()
		switch {
		case t.Expires.IsZero():
		case t.Expires.After(time.Now()):
			line += "  until " + t.Expires.Format(time.RFC3339)
		default:
			line += "  expired " + t.Expires.Format(time.RFC3339)
		}
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
	ID   string `arg:"" optional:"" help:"Which one, as in mcpx token list; without it all of the name."`
}

func (cmd *tokenDeleteCommand) Run(c *cli, s streams) error {
	s.absent = true
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) { return setup.RemoveToken(data, cmd.Name, cmd.ID) })
	which := "token of " + cmd.Name
	if cmd.ID != "" {
		which = "token " + cmd.ID + " of " + cmd.Name
	}
	if errors.Is(err, setup.ErrNoToken) && cmd.ID != "" {
		return &hintError{fmt.Sprintf("there is no %s in %s", which, file), c.hint("token", "list")}
	}
	if errors.Is(err, setup.ErrNoToken) {
		return &hintError{fmt.Sprintf("%s has no token in %s", cmd.Name, file), c.hint("token", "list")}
	}
	if err != nil && strings.Contains(err.Error(), "no client could connect") {
		return &hintError{
			"no client could connect without the " + which,
			"make another one first, or take auth out of " + file + " and start mcpx again",
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "deleted the %s from %s\n", which, file)
	return nil
}
