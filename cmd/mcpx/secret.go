package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/secret"
)

type secretCommand struct {
	Set    secretSetCommand    `cmd:"" help:"Store a secret; its value comes from the terminal or stdin."`
	List   secretListCommand   `cmd:"" help:"Print the names of the secrets."`
	Delete secretDeleteCommand `cmd:"" help:"Forget a secret."`
}

func (cmd *secretCommand) Help() string {
	return examples("mcpx secret set github", "mcpx secret list", "mcpx secret delete github")
}

type secretSetCommand struct {
	Name string `arg:"" help:"The name, as in ${keyring:NAME}."`
}

func (cmd *secretSetCommand) Help() string {
	return "Stores a secret in the keyring of the system. A server of the config names it as ${keyring:NAME}. The value is not an argument, " +
		"because other users of the computer can see arguments.\n\n" + examples("mcpx secret set github", "pass show github | mcpx secret set github")
}

func (cmd *secretSetCommand) Run(ctx context.Context, s streams) error {
	if err := secret.CheckName(cmd.Name); err != nil {
		return err
	}
	value, err := hiddenInput(ctx, s, "Value of "+cmd.Name+" (not shown): ")
	if err != nil {
		return err
	}
	unsealed, err := app.Secrets().Set(ctx, cmd.Name, value)
	if err != nil {
		return err
	}
	if unsealed != nil {
		reason := sanitize.Line(unsealed.Error(), 300)
		fmt.Fprintf(s.err, "mcpx: warning: the secret is kept unencrypted, readable by you only: %s\n", reason)
	}
	fmt.Fprintf(s.out, "kept; name it in the config as ${keyring:%s}. A running mcpx reads it when it loads its config again.\n", cmd.Name)
	return nil
}

// hiddenInput reads a line from the terminal without showing it. If stdin is no terminal, it reads stdin to the end, but at most
// two bytes more than a secret may have.
func hiddenInput(ctx context.Context, s streams, prompt string) (string, error) {
	if file, ok := s.in.(*os.File); ok && s.terminal {
		fmt.Fprint(s.err, prompt)
		defer fmt.Fprintln(s.err)
		return terminal.ReadHidden(ctx, file)
	}
	data, err := io.ReadAll(io.LimitReader(s.in, secret.MaxBytes+2))
	return strings.TrimRight(string(data), "\r\n"), err
}

type secretListCommand struct{}

func (cmd *secretListCommand) Run(s streams) error {
	names, err := app.Secrets().Names()
	for _, name := range names {
		fmt.Fprintln(s.out, name)
	}
	if err == nil && len(names) == 0 {
		fmt.Fprintln(s.err, "there are no secrets")
	}
	return err
}

type secretDeleteCommand struct {
	Name string `arg:"" help:"The name of the secret."`
}

func (cmd *secretDeleteCommand) Run(ctx context.Context, s streams) error {
	found, err := app.Secrets().Delete(ctx, cmd.Name)
	if err == nil && !found {
		err = errors.New("there is no secret " + sanitize.Line(cmd.Name, 64))
	}
	if err == nil {
		fmt.Fprintln(s.out, "deleted "+cmd.Name)
	}
	return err
}
