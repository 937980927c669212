package main

import (
	"bytes"
	"context"
	"fmt"

	"mcpx/internal/desk/setup"
)

type enableCommand struct {
	Name string `arg:"" help:"The server to use again."`
}

func (cmd *enableCommand) Help() string { return examples("mcpx enable notes") }

func (cmd *enableCommand) Run(ctx context.Context, c *cli, s streams) error {
	return c.setEnabled(ctx, s, cmd.Name, true)
}

type disableCommand struct {
	Name string `arg:"" help:"The server to keep in the config, but not to use."`
}

func (cmd *disableCommand) Help() string {
	return `The entry stays as it is, with "enabled": false.

` + examples("mcpx disable notes", "mcpx enable notes")
}

func (cmd *disableCommand) Run(ctx context.Context, c *cli, s streams) error {
	return c.setEnabled(ctx, s, cmd.Name, false)
}

func (c *cli) setEnabled(ctx context.Context, s streams, name string, on bool) error {
	already := ""
	file, err := c.editServer(s, name, func(data []byte, name string) ([]byte, error) {
		edited, err := setup.SetEnabled(data, name, on)
		if bytes.Equal(edited, data) {
			already = " already"
		}
		return edited, err
	})
	if err != nil {
		return err
	}
	word := map[bool]string{true: "enabled", false: "disabled"}[on]
	fmt.Fprintf(s.out, "%s is %s%s in %s\n", name, word, already, file)
	if already == "" {
		c.hintReload(ctx, s, file)
	}
	return nil
}
