package main

import "mcpx/internal/desk/config"

type schemaCommand struct{}

func (cmd *schemaCommand) Help() string {
	return `Editors use the JSON Schema (draft 2020-12) to complete and check a config. If the config has "$schema": "./config.schema.json",
they read the file with this name beside it. "mcpx init" writes both.

` + examples("mcpx schema > config.schema.json")
}

func (cmd *schemaCommand) Run(s streams) error {
	_, err := s.out.Write(config.Schema())
	return err
}
