package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
	"mcpx/internal/executor"
	"mcpx/internal/results"
)

type execCommand struct {
	Server    string   `arg:"" help:"The server, or SERVER.TOOL."`
	Tool      string   `arg:"" optional:"" help:"The tool."`
	Arguments []string `arg:"" optional:"" sep:"none" help:"The arguments: KEY=VALUE, or one JSON object; - reads it from stdin."`
	Select    string   `help:"A jq filter for the result." placeholder:"FILTER"`
	Grep      string   `help:"Print only the matching lines of the result, or of what --select selects; a regular expression." placeholder:"REGEX"`
	Each      string   `help:"Several calls of the tool: a JSON list of arguments, each merged over the other ones." placeholder:"LIST"`
	Raw       bool     `name:"json" help:"Print the raw result instead of the text; with --select, what it selects as JSON."`
}

func (cmd *execCommand) Help() string {
	return "A VALUE is what the tool's schema says: a string, else JSON, such as 5, true or [1,2].\n\n" + examples(
		"mcpx exec time get_current_time timezone=Europe/Rome",
		`mcpx exec time get_current_time '{"timezone": "Europe/Rome"}'`,
		"mcpx exec time get_current_time timezone=Europe/Rome --select .datetime",
		`mcpx exec time get_current_time --each '[{"timezone": "Europe/Rome"}, {"timezone": "Asia/Tokyo"}]'`,
		"echo '{\"path\": \"/tmp\"}' | mcpx exec files list_directory -")
}

// Validate reports a missing server or tool as a usage error.
func (cmd *execCommand) Validate() error {
	switch {
	case cmd.Server == "":
		return errors.New("which server and tool? mcpx inspect lists them")
	case cmd.Tool == "" && !strings.Contains(cmd.Server, "."):
		return fmt.Errorf("which tool? mcpx inspect %s lists them", cmd.Server)
	}
	return nil
}

// resolve sets the fields Server and Tool. If the first word of the command line is SERVER.TOOL, the second word is already an
// argument of the tool.
func (cmd *execCommand) resolve(c *cli, cfg *config.Config) error {
	server, tool := named(cfg, cmd.Server)
	joined := cmd.Tool == "" || cmd.Tool == "-" || strings.ContainsAny(cmd.Tool, "={")
	switch {
	case server != "" && tool == "":
		cmd.Server = server
	case server != "" && joined:
		if cmd.Tool != "" {
			cmd.Arguments = append([]string{cmd.Tool}, cmd.Arguments...)
		}
		cmd.Server, cmd.Tool = server, tool
	}
	if cmd.Tool == "" && server == "" {
		return noSuchServer(cmd.Server, serverNames(cfg))
	}
	if cmd.Tool == "" {
		return &usageError{hintError{"the tool is missing", c.hint("exec", cmd.Server, "TOOL")}}
	}
	return nil
}

// Run makes the call in the daemon if possible, because the server then stays up for the next call. Otherwise it makes the call in
// this process.
func (cmd *execCommand) Run(ctx context.Context, c *cli, s streams) error {
	reads := len(cmd.Arguments) == 1 && strings.TrimSpace(cmd.Arguments[0]) == "-"
	if ran, err := c.warm(ctx, s, daemonCommand{"exec", cmd, reads, true}); ran {
		return err
	}
	return cmd.runHere(ctx, c, s)
}

// runHere makes the call in this process. It prints the result that a model would get from the tool exec, but not shortened. With
// --json, and without --select, --grep and --each, it prints the result as the server sent it.
func (cmd *execCommand) runHere(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadServers(ctx, s, cmd.Server)
	if err == nil {
		err = cmd.resolve(c, cfg)
	}
	if err != nil {
		return err
	}
	arguments, pairs, err := cmd.arguments(c, s, cfg.MaxMessageBytes)
	if err != nil {
		return err
	}
	each, err := cmd.each()
	if err != nil {
		return err
	}
	a, done, err := c.startOrKeep(s, cfg, app.Once, cmd.Server)
	if err != nil {
		return err
	}
	defer done()
	if reached(ctx, a, s, cmd.Server); ctx.Err() != nil {
		return ctx.Err()
	}
	if pairs != nil {
		var schema json.RawMessage
		if server, ok := a.Executor.Catalogue(nil).Server(cmd.Server); ok {
			if tool, ok := server.Tool(cmd.Tool); ok {
				schema = tool.InputSchema
			}
		}
		arguments = object(pairs, schema)
	}
	request := executor.Request{Server: cmd.Server, Tool: cmd.Tool, Arguments: arguments, Each: each, References: true}
	if cmd.Raw && cmd.Select == "" && cmd.Grep == "" && each == nil {
		return cmd.raw(ctx, a, request, s)
	}
	if request.Select, request.Grep = cmd.Select, cmd.Grep; cmd.Select != "" || cmd.Raw {
		request.Format.Structured = results.StructuredAlways // --select and --json need structured content
	}
	result, err := a.Executor.Exec(ctx, request)
	if err != nil {
		return err
	}
	if cmd.Select != "" {
		result = selection(result)
	}
	if cmd.Grep != "" {
		result = withoutHandles(result)
	}
	return printResult(s, result, cmd.Raw)
}

// handleOfGrep matches the end of a text of a result with a grep. For models, it says with which handle they can read more of the
// result later.
var handleOfGrep = pattern.New(`; (all|around them): exec \{"server_name":"mcpx","tool_name":"read_result","arguments":\{[^{}]*\}\}\]$`)

// withoutHandles removes the handles from a result with --grep, as they end with the command.
func withoutHandles(r *results.Result) *results.Result {
	cut := *r
	cut.Content = slices.Clone(r.Content)
	for i, content := range cut.Content {
		block := wire.ReadBlock(content)
		if at := handleOfGrep.FindStringIndex(block.Text); at != nil {
			cut.Content[i] = block.WithText(block.Text[:at[0]] + "]")
		}
	}
	return &cut
}

// selection returns what --select prints: only the value, or an error. For models, the error names a handle with which they can
// read the whole result later. selection removes the handle, for which a command has no use.
func selection(r *results.Result) *results.Result {
	var data struct {
		Result json.RawMessage
		Error  struct {
			Code, Message, Handle, Shape string
		}
	}
	if json.Unmarshal(r.Structured, &data) != nil {
		return r
	}
	if !r.IsError && data.Result != nil {
		value := *r
		value.Structured = data.Result
		return &value
	}
	if data.Error.Handle == "" {
		return r
	}
	failure := &results.Failure{Code: data.Error.Code, Message: data.Error.Message}
	failure.Text = failure.Code + ": " + failure.Message + "\nThe call was made; without --select its whole result is printed"
	if data.Error.Shape != "" {
		failure.Text += "\nShape of the result: " + data.Error.Shape
		failure.With("shape", data.Error.Shape)
	}
	return failure.Result(true)
}

// raw prints the result as the server sent it.
func (cmd *execCommand) raw(ctx context.Context, a *app.App, request executor.Request, s streams) error {
	raw, failure := a.Executor.Raw(ctx, request)
	if failure != nil {
		return printResult(s, failure, true)
	}
	fmt.Fprintln(s.out, s.screen.JSON(string(raw)))
	var result struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(raw, &result) == nil && result.IsError {
		return errFailed
	}
	return nil
}
