package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/terminal"
	"mcpx/internal/base/wire"
	"mcpx/internal/budget"
	"mcpx/internal/executor"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
	"mcpx/internal/view"
)

type demoCommand struct {
	All bool `help:"Print the whole texts, which take several screens."`
}

func (cmd *demoCommand) Help() string {
	return "The sample servers run inside mcpx: there is nothing to install. mcpx serve --demo serves them to a client.\n\n" +
		examples("mcpx demo", "mcpx demo --all | less", "mcpx budget --demo")
}

// Run shows what a model sees of the sample servers, and how many tokens that costs.
func (cmd *demoCommand) Run(ctx context.Context, c *cli, s streams) error {
	a, err := app.New(app.Options{Profile: app.Demo, Log: c.logger(s, "error", "text")})
	if err != nil {
		return err
	}
	a.Registry.Start()
	defer a.Close()
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.Registry.WaitTried(bounded)
	d := demoScreen{Screen: s.screen, w: s.out, app: a, all: cmd.All}
	d.carried()
	server, tool := "notes", "delete_note"
	if d.all {
		server, tool = "cities", "search_cities"
		description := a.View.Description()
		d.title("The description of inspect: %s tokens", terminal.Number(tokens.Count(description)))
		d.text(description)
	}
	if err := d.lookUp(ctx, server, tool); err != nil {
		return err
	}
	if err := d.calls(ctx); err != nil {
		return err
	}
	fmt.Fprint(d.w, "\n", d.Hang(d.Bold("Next: "), "mcpx init, for the servers of your MCP clients; mcpx demo --all says more"))
	return nil
}

// demoScreen prints the parts of the demo. If the field all is false, they fit on a screen of 80 x 24 characters.
type demoScreen struct {
	terminal.Screen
	w   io.Writer
	app *app.App
	all bool
}

// title prints a title, after an empty line if the screen is high enough for it.
func (d *demoScreen) title(format string, args ...any) {
	if d.all || d.Height() == 0 || d.Height() > 28 {
		fmt.Fprintln(d.w)
	}
	fmt.Fprint(d.w, d.Hang("", d.Bold(fmt.Sprintf(format, args...))))
}

// text prints a text that the model gets.
func (d *demoScreen) text(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprint(d.w, d.Wrap(2, strings.TrimSuffix(line, "\n")))
	}
}

// carried prints how many tokens of tool definitions each request to a model contains, without mcpx and with mcpx.
func (d *demoScreen) carried() {
	snap := d.app.Executor.Catalogue(nil)
	total, mine := 0, 0
	for i := range snap.Servers {
		for _, def := range budget.Definitions(snap.Servers[i].Tools) {
			total += def.Tokens()
		}
	}
	surface, _ := d.app.View.Surface(snap, "")
	for _, def := range surface {
		mine += budget.Definition(def).Tokens()
	}
	servers, tools := terminal.Count(len(snap.Servers), "server"), terminal.Count(snap.Tools(), "tool")
	fmt.Fprint(d.w, d.Hang("", d.Bold(fmt.Sprintf("%s with %s: the tokens that every request carries", servers, tools))))
	columns := d.Width() - 38
	fmt.Fprintf(d.w, "  connected directly  %6s  %s\n", terminal.Number(total), d.Yellow(d.Bar(total, total, columns)))
	fmt.Fprintf(d.w, "  mcpx: two tools     %6s  %s %s\n",
		terminal.Number(mine), d.Green(d.Bar(mine, total, columns)), d.Bold(terminal.Change(total, mine)))
}

// lookUp shows the answer of inspect about one tool.
func (d *demoScreen) lookUp(ctx context.Context, server, tool string) error {
	looked := d.app.View.Inspect(ctx, nil, view.Query{Server: server, Tool: tool}, false)
	s, ok := d.app.Executor.Catalogue(nil).Server(server)
	if !ok || looked.IsError {
		return fmt.Errorf("inspecting %s.%s: %s", server, tool, blockText(looked))
	}
	t, _ := s.Tool(tool)
	d.title("inspect %s.%s: %d tokens, as JSON Schema %d", server, tool, tokens.Count(blockText(looked)),
		budget.Definitions([]catalog.Tool{*t})[0].Tokens())
	d.text(blockText(looked))
	return nil
}

// calls shows three calls of exec: one whose result is a table, one whose error says what to do, and the corrected call.
func (d *demoScreen) calls(ctx context.Context) error {
	for _, call := range []struct {
		executor.Request
		compared bool
	}{
		{executor.Request{Server: "tasks", Tool: "list_tasks", Select: ".tasks[:3][]|{number,title}"}, true},
		{executor.Request{Server: "cities", Tool: "city_distance", Arguments: json.RawMessage(`{"from":"Tokyo","dest":"Osaka"}`)}, false},
		{executor.Request{
			Server: "cities", Tool: "city_distance", Arguments: json.RawMessage(`{"from":"Tokyo","to":"Osaka"}`), Select: ".distance_km",
		}, false},
	} {
		result, err := d.app.Executor.Exec(ctx, call.Request)
		if err != nil {
			return err
		}
		head := fmt.Sprintf("exec %s.%s", call.Server, call.Tool)
		if call.Arguments != nil {
			head += " " + string(call.Arguments)
		}
		if call.Select != "" {
			head += fmt.Sprintf(" select %q", call.Select)
		}
		if call.compared {
			sent, err := d.sent(ctx, call.Request)
			if err != nil {
				return err
			}
			from, to := tokens.Count(sent), tokens.Count(blockText(result))
			head += fmt.Sprintf(": %s of %s tokens", terminal.Number(to), terminal.Number(from))
		}
		d.title("%s", head)
		d.text(blockText(result))
	}
	return nil
}

// sent returns the result text as the server itself sends it, before mcpx shortens it.
func (d *demoScreen) sent(ctx context.Context, request executor.Request) (string, error) {
	raw, failure := d.app.Executor.Raw(ctx, request)
	if failure != nil {
		return "", fmt.Errorf("calling %s.%s: %s", request.Server, request.Tool, blockText(failure))
	}
	var direct struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &direct); err != nil {
		return "", fmt.Errorf("reading the result: %w", err)
	}
	return blockText(&results.Result{Content: direct.Content}), nil
}

// blockText returns the text of the first text block.
func blockText(r *results.Result) string {
	for _, block := range r.Content {
		if text := wire.ReadBlock(block).Text; text != "" {
			return text
		}
	}
	return ""
}
