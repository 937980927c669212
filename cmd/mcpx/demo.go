package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"mcpx/internal/app"
	"mcpx/internal/executor"
	"mcpx/internal/tokens"
	"mcpx/internal/view"
)

// width is the terminal that the demo is laid out for, in columns.
const width = 100

type demoCommand struct{}

// Run shows what a model sees of the sample servers, and what that costs.
func (cmd *demoCommand) Run(ctx context.Context, c *cli, s streams) error {
	a, err := app.NewDemo(c.demoLogger(s, "error"))
	if err != nil {
		return err
	}
	a.Registry.Start()
	defer a.Close()
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.Registry.WaitTried(bounded)
	d := demoScreen{w: s.out, app: a}
	d.carried()
	d.catalogue()
	if err := d.inspect(ctx, "cities", "search_cities"); err != nil {
		return err
	}
	if err := d.exec(ctx, "cities", "search_cities", `{"country":"JP","limit":8}`); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "\nNext: mcpx check with your own config (see config.example.json), or connect a client (README.md).")
	return nil
}

// demoScreen writes the parts of the demo.
type demoScreen struct {
	w   io.Writer
	app *app.App
}

func (d *demoScreen) title(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(d.w, "\n== %s %s\n\n", text, strings.Repeat("=", max(0, width-4-utf8.RuneCountInString(text))))
}

// carried compares what a model carries in every request.
func (d *demoScreen) carried() {
	snap := d.app.Executor.Catalogue(nil)
	d.title("What the model carries in every request (o200k tokens)")
	total, servers := 0, ""
	for i := range snap.Servers {
		s := &snap.Servers[i]
		n := 0
		for j := range s.Tools {
			n += tokens.Count(string(definition(s.Tools[j].Name, s.Tools[j].Description, s.Tools[j].InputSchema)))
		}
		total += n
		servers += fmt.Sprintf("    %-12s %3d tools %8d\n", s.Name, len(s.Tools), n)
	}
	mine := 0
	for _, def := range d.app.View.Surface("") {
		mine += tokens.Count(string(definition(def.Name, def.Description, def.InputSchema)))
	}
	fmt.Fprintf(d.w, "  %-28s %8d  %s\n%s", "connected directly", total, bar(total, total), servers)
	fmt.Fprintf(d.w, "  %-28s %8d  %s\n", "through mcpx, 2 tools", mine, bar(mine, total))
	fmt.Fprintf(d.w, "  %-28s %7.0f%%\n", "saved", 100*(1-float64(mine)/float64(total)))
}

// definition is a tool as it stands in a model request.
func definition(name, description string, schema json.RawMessage) []byte {
	if schema == nil {
		schema = json.RawMessage("{}")
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(view.Definition{Name: name, Description: description, InputSchema: schema})
	return bytes.TrimSpace(out.Bytes())
}

func bar(n, of int) string {
	const columns = 56
	return strings.Repeat("#", max(1, n*columns/max(1, of)))
}

func (d *demoScreen) catalogue() {
	text := d.app.View.Description()
	d.title("The description of inspect: %d tokens", tokens.Count(text))
	for _, line := range strings.Split(text, "\n") {
		fmt.Fprintln(d.w, clip("  "+line, width))
	}
}

func (d *demoScreen) inspect(ctx context.Context, server, tool string) error {
	result := d.app.View.Inspect(ctx, nil, view.Query{Server: server, Tool: tool}, false)
	text := blockText(result)
	s, ok := d.app.Executor.Catalogue(nil).Server(server)
	if !ok || result.IsError {
		return fmt.Errorf("inspecting %s.%s: %s", server, tool, text)
	}
	t, _ := s.Tool(tool)
	d.title("inspect %s.%s: %d tokens, as JSON Schema %d", server, tool,
		tokens.Count(text), tokens.Count(string(definition(t.Name, t.Description, t.InputSchema))))
	for _, line := range strings.Split(text, "\n") {
		fmt.Fprintln(d.w, clip("  "+line, width))
	}
	return nil
}

// exec shows one call with the server's JSON beside what the model gets.
func (d *demoScreen) exec(ctx context.Context, server, tool, arguments string) error {
	request := executor.Request{Server: server, Tool: tool, Arguments: json.RawMessage(arguments)}
	raw, fault := d.app.Executor.Raw(ctx, request)
	if fault != nil {
		return fmt.Errorf("calling %s.%s: %s", server, tool, blockText(fault))
	}
	var direct struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &direct); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	before := blockText(&executor.Result{Content: direct.Content})
	shaped, err := d.app.Executor.Exec(ctx, request)
	if err != nil {
		return err
	}
	after := blockText(shaped)
	from, to := tokens.Count(before), tokens.Count(after)
	d.title("exec %s.%s %s: %d tokens, from %d (%.0f%% saved)", server, tool, arguments, to, from, 100*(1-float64(to)/float64(from)))
	d.columns("what the server sent", before, "what the model gets", after)
	return nil
}

// columns prints two texts side by side, the first lines of each.
func (d *demoScreen) columns(leftTitle, left, rightTitle, right string) {
	const rows, leftWidth = 18, 38
	l, r := strings.Split(left, "\n"), strings.Split(right, "\n")
	cell := func(lines []string, i int) string {
		switch {
		case i < len(lines) && (i < rows-1 || len(lines) <= rows):
			return lines[i]
		case i == rows-1 && len(lines) > rows:
			return fmt.Sprintf("... %d more lines", len(lines)-rows+1)
		}
		return ""
	}
	fmt.Fprintf(d.w, "  %-*s | %s\n  %s-+-%s\n", leftWidth, leftTitle, rightTitle, strings.Repeat("-", leftWidth), strings.Repeat("-", width-leftWidth-5))
	for i := range min(rows, max(len(l), len(r))) {
		a := clip(cell(l, i), leftWidth)
		pad := strings.Repeat(" ", max(0, leftWidth-utf8.RuneCountInString(a)))
		fmt.Fprintln(d.w, strings.TrimRight(fmt.Sprintf("  %s%s | %s", a, pad, clip(cell(r, i), width-leftWidth-5)), " "))
	}
}

// clip cuts a line to columns.
func clip(line string, columns int) string {
	line = strings.ReplaceAll(line, "\t", "  ")
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-3]) + "..."
}

// blockText is the text of the first text block.
func blockText(r *executor.Result) string {
	for _, block := range r.Content {
		var text struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(block, &text) == nil && text.Text != "" {
			return text.Text
		}
	}
	return ""
}
