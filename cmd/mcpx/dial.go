package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mcpx/internal/app"
)

type dialCommand struct {
	Address string   `arg:"" help:"The hosted mcpx: wss://HOST/dial/NAME."`
	Servers []string `arg:"" optional:"" name:"server" help:"The servers to offer: one as it is, several or none as the view tools."`
	Token   string   `env:"MCPX_DIAL_TOKEN" help:"The token of the hosted mcpx. Without it, the secret dial of the keyring is used (mcpx secret set dial)." placeholder:"TOKEN"`
}

func (cmd *dialCommand) Help() string {
	return "Runs until it is ended, and connects again when the connection is lost. A line on stderr says each thing that happens.\n\n" +
		examples("mcpx dial wss://mcp.example.com/dial/laptop files", "mcpx dial wss://mcp.example.com/dial/laptop")
}

// Run connects this machine's servers to the hosted mcpx at the address, until ctx ends or the hosted mcpx refuses for good.
func (cmd *dialCommand) Run(ctx context.Context, c *cli, s streams) error {
	if text := app.CheckDialAddress(cmd.Address); text != "" {
		return &usageError{hintError{text, "mcpx dial wss://HOST/dial/NAME"}}
	}
	cfg, err := c.loadConfig(ctx, s, cmd.Servers...)
	if err != nil {
		return err
	}
	names := serverNames(cfg)
	for i, name := range cmd.Servers {
		if served := cfg.Served(name); slices.Contains(names, served) {
			cmd.Servers[i] = served
		} else {
			return noSuchServer(name, names)
		}
	}
	token := cmd.Token
	if token == "" {
		token, _ = app.Secrets().Get(ctx, "dial") // without a token, the hosted mcpx says that one is needed
	}
	offered, view := app.Offered(cfg, cmd.Servers)
	a, err := app.New(app.Options{
		Config: offered, Profile: app.Command, Only: cmd.Servers, Log: c.logger(s, cmp.Or(string(c.LogLevel), "warn"), cfg.LogFormat),
	})
	if err != nil {
		return err
	}
	return a.DialOut(ctx, cmd.Address, token, view, func(line string) { fmt.Fprintln(s.err, "mcpx:", line) })
}
