package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/desk/setup"
)

type removeCommand struct {
	Name string `arg:"" help:"The server to take out of the config."`
}

func (cmd *removeCommand) Help() string {
	return `The comments around the entry stay. To keep a server but not use it, disable it.

` + examples("mcpx remove notes", "mcpx disable notes")
}

func (cmd *removeCommand) Run(ctx context.Context, c *cli, s streams) error {
	file, err := c.editServer(s, cmd.Name, setup.RemoveServer)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "removed %s from %s\n", cmd.Name, file)
	c.hintReload(ctx, s, file)
	return nil
}

// editServer calls edit to change the entry of a server in the text of the config. The parameter name is the server's name in the
// file, or the name that mcpx shows to clients; edit gets the name in the file.
func (c *cli) editServer(s streams, name string, edit func(data []byte, name string) ([]byte, error)) (file string, err error) {
	var names []string
	file, err = c.editConfig(s, func(data []byte) ([]byte, error) {
		names = setup.ServerNames(data)
		return setup.ConfigFile{Reading: s.reading()}.Named(name, edit)(data)
	})
	if !errors.Is(err, setup.ErrNoServer) {
		return file, err
	}
	if _, missing := c.findConfig(s); missing != nil {
		return file, missing
	}
	for _, server := range names {
		if strings.HasPrefix(name, server+".") {
			return file, &hintError{
				fmt.Sprintf("%q is a tool, not a server", name),
				fmt.Sprintf(`the config turns tools off: "disabled_tools": [%q]`, name),
			}
		}
	}
	return file, noSuchServer(name, names)
}
