package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"mcpx/internal/executor"
)

type execCommand struct {
	Server    string `arg:"" help:"The server."`
	Tool      string `arg:"" help:"The tool."`
	Arguments string `arg:"" optional:"" name:"json" help:"The arguments as a JSON object; - reads them from stdin."`
	Raw       bool   `name:"json" help:"Print the raw result instead of the text."`
}

// Run prints what the model would get from exec.
func (cmd *execCommand) Run(ctx context.Context, c *cli, s streams) error {
	arguments := []byte(cmd.Arguments)
	if cmd.Arguments == "-" {
		var err error
		if arguments, err = io.ReadAll(io.LimitReader(s.in, 64<<20)); err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
	}
	if len(arguments) > 0 && !json.Valid(arguments) {
		return fmt.Errorf("the arguments are not valid JSON: %.80q", arguments)
	}
	cfg, err := c.loadConfig(s)
	if err != nil {
		return err
	}
	a := assemble(cfg, c.logger(s, cfg, true), cmd.Server)
	a.registry.Start()
	defer a.close(closeWithin)
	request := executor.Request{Server: cmd.Server, Tool: cmd.Tool, Arguments: arguments}
	if cmd.Raw {
		return cmd.raw(ctx, a, request, s.out)
	}
	result, err := a.executor.Exec(ctx, request)
	if err != nil {
		return err
	}
	return printResult(s.out, result, false)
}

// raw prints the upstream's result as it came.
func (cmd *execCommand) raw(ctx context.Context, a *app, request executor.Request, w io.Writer) error {
	raw, fault := a.executor.Raw(ctx, request)
	if fault != nil {
		return printResult(w, fault, true)
	}
	fmt.Fprintln(w, string(raw))
	var result struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(raw, &result) == nil && result.IsError {
		return &failure{exitFailed}
	}
	return nil
}
