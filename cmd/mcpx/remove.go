package main

import (
	"errors"
	"fmt"

	"mcpx/internal/setup"
)

type removeCommand struct {
	Name string `arg:"" help:"The server to take out of the config."`
}

// Help has the examples.
func (cmd *removeCommand) Help() string {
	return `The comments around the entry stay. To keep a server but not use it, disable it.

` + examples("mcpx remove notes", "mcpx disable notes")
}

// Run removes the server.
func (cmd *removeCommand) Run(c *cli, s streams) error {
	file, err := c.editServer(s, cmd.Name, func(data []byte) ([]byte, error) { return setup.RemoveServer(data, cmd.Name) })
	if err == nil {
		fmt.Fprintf(s.out, "removed %s from %s\n", cmd.Name, file)
	}
	return err
}

// editServer changes a server that must be in the config.
func (c *cli) editServer(s streams, name string, edit func(data []byte) ([]byte, error)) (file string, err error) {
	var before []byte
	file, err = c.editConfig(s, func(data []byte) ([]byte, error) {
		before = data
		return edit(data)
	})
	if errors.Is(err, setup.ErrNoServer) {
		err = noSuchServer(name, setup.ServerNames(before))
	}
	return file, err
}
