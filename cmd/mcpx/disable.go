package main

type disableCommand struct {
	Name string `arg:"" help:"The server to keep in the config, but not to use."`
}

// Help has the examples.
func (cmd *disableCommand) Help() string {
	return `The entry stays as it is, with "enabled": false.

` + examples("mcpx disable notes", "mcpx enable notes")
}

// Run disables the server.
func (cmd *disableCommand) Run(c *cli, s streams) error {
	return c.turn(s, cmd.Name, false)
}
