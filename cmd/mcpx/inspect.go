package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"mcpx/internal/app"
	"mcpx/internal/results"
	"mcpx/internal/view"
)

type inspectCommand struct {
	Server string `arg:"" optional:"" help:"The server; without it, the description that the model sees."`
	Tool   string `arg:"" optional:"" help:"The tool, or several with commas."`
	Query  string `help:"What you want to do, in words." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print structuredContent instead of the text."`
}

func (cmd *inspectCommand) Help() string {
	return examples("mcpx inspect", "mcpx inspect github", "mcpx inspect github create_issue", "mcpx inspect --query 'read a file'")
}

// Run prints the answer that a model would get from inspect.
func (cmd *inspectCommand) Run(ctx context.Context, c *cli, s streams) error {
	switch {
	case cmd.Tool != "" && cmd.Query != "":
		return errors.New("give a tool or --query, not both: a tool is described, a query is searched for")
	case cmd.Tool != "" && cmd.Server == "":
		return errors.New("the tool needs its server: mcpx inspect SERVER TOOL")
	}
	cfg, err := c.loadConfig(ctx, s, cmd.Server)
	if err != nil {
		return err
	}
	if server := cfg.Served(cmd.Server); server != "" {
		cmd.Server = server
	}
	a, err := c.start(s, cfg, app.Once, cmd.Server)
	if err != nil {
		return err
	}
	defer a.Close()
	if installed(ctx, a, s); ctx.Err() != nil {
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, cfg.StartupWait)
	if cmd.Server == "" {
		a.Registry.WaitKnown(bounded, nil)
	} else { // even if the disk cache has its tools, or its state would always be connecting
		a.Registry.WaitServer(bounded, cmd.Server)
	}
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cmd.Server == "" && cmd.Query == "" && !cmd.JSON {
		fmt.Fprintln(s.out, a.View.Description())
		return nil
	}
	result := a.View.Inspect(ctx, nil, view.Query{Server: cmd.Server, Tool: cmd.Tool, Text: cmd.Query}, cmd.JSON)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return printResult(s.out, result, cmd.JSON)
}

// printResult prints the content blocks of a result: text as it is, other blocks as JSON. If raw is
// true, it prints structuredContent instead.
func printResult(w io.Writer, r *results.Result, raw bool) error {
	if raw && r.Structured != nil {
		fmt.Fprintln(w, string(r.Structured))
	} else {
		for _, block := range r.Content {
			var text struct {
				Type string  `json:"type"`
				Text *string `json:"text"`
			}
			if json.Unmarshal(block, &text) == nil && text.Type == "text" && text.Text != nil {
				fmt.Fprintln(w, *text.Text)
				continue
			}
			fmt.Fprintln(w, string(block))
		}
	}
	if r.IsError {
		return errFailed
	}
	return nil
}
