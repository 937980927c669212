package main

import (
	"bytes"
	"fmt"

	"mcpx/internal/desk/setup"
)

type enableCommand struct {
	Name string `arg:"" help:"The server to use again."`
}

// Help has the examples.
func (cmd *enableCommand) Help() string {
	return examples("mcpx enable notes")
}

// Run enables the server.
func (cmd *enableCommand) Run(c *cli, s streams) error {
	return c.turn(s, cmd.Name, true)
}

// turn turns a server on or off in the config.
func (c *cli) turn(s streams, name string, on bool) error {
	same := false
	file, err := c.editServer(s, name, func(data []byte, name string) ([]byte, error) {
		edited, err := setup.SetEnabled(data, name, on)
		same = bytes.Equal(edited, data)
		return edited, err
	})
	if err != nil {
		return err
	}
	word, already := map[bool]string{true: "enabled", false: "disabled"}[on], ""
	if same {
		already = " already"
	}
	fmt.Fprintf(s.out, "%s is %s%s in %s\n", name, word, already, file)
	return nil
}
