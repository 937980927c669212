package main

import "mcpx/internal/desk/config"

type schemaCommand struct{}

// Help has the examples.
func (cmd *schemaCommand) Help() string {
	return `Editors complete and check a config by its JSON Schema (draft 2020-12): with "$schema": "./config.schema.json" in the config they
read the file of this name beside it. "mcpx init" writes both.

` + examples("mcpx schema > config.schema.json")
}

// Run prints the schema.
func (cmd *schemaCommand) Run(s streams) error {
	_, err := s.out.Write(config.Schema())
	return err
}
