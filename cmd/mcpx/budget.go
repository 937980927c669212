package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/budget"
	"mcpx/internal/compress"
	"mcpx/internal/describe"
	"mcpx/internal/desk/config"
)

type budgetCommand struct {
	Tools   string   `help:"Measure the answers to tools/list recorded in this folder instead of connecting, with the settings of --config or else the default ones." placeholder:"DIR" type:"existingdir" xor:"tools"`
	Demo    bool     `help:"Measure the demo's sample servers." xor:"tools"`
	Results string   `help:"Measure the results recorded in this folder, *.json and *.txt (class--name.json); alone, or with --tools, --demo or --config." placeholder:"DIR" type:"existingdir"`
	Exclude []string `help:"Leave out results of these classes." placeholder:"CLASS"`
	Price   float64  `help:"Dollars per million input tokens." default:"3" placeholder:"DOLLARS"`
	All     bool     `help:"Print everything, even if it is longer than the screen."`
	JSON    bool     `name:"json" help:"Print the figures as JSON."`
	SVG     string   `name:"svg" help:"Write a bar chart to this file as well." placeholder:"FILE" type:"path"`
}

func (cmd *budgetCommand) Help() string {
	return fromDisk + examples("mcpx budget", "mcpx budget --demo", "mcpx budget --config ~/.cursor/mcp.json --json",
		"mcpx budget --tools tools/ --results results/ --svg budget.svg")
}

// Validate reports an invalid value as a usage error.
func (cmd *budgetCommand) Validate() error {
	if !(cmd.Price >= 0 && cmd.Price <= 1e6) {
		return fmt.Errorf("--price: must be from 0 to 1000000")
	}
	return nil
}

func (cmd *budgetCommand) Run(ctx context.Context, c *cli, s streams) error {
	report, err := cmd.measure(ctx, c, s)
	if err != nil {
		return err
	}
	if cmd.SVG != "" {
		if err := os.WriteFile(cmd.SVG, budget.Chart(report), 0o644); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
	}
	if cmd.JSON {
		return printJSON(s.out, report)
	}
	return budget.WriteTable(s.out, report, s.screen, cmd.All)
}

// printJSON prints a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// measure counts the tokens of tool definitions, of recorded results, or of both, depending on the flags.
func (cmd *budgetCommand) measure(ctx context.Context, c *cli, s streams) (*budget.Report, error) {
	meter := &budget.Meter{Price: cmd.Price, Compress: compress.Options{TOON: true, JS: true}}
	report := meter.Report()
	if cmd.Results == "" || cmd.Tools != "" || cmd.Demo || c.Config != "" {
		a, err := cmd.assemble(ctx, c, s)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		snap, notes, err := cmd.servers(ctx, a)
		if err != nil {
			return nil, err
		}
		meter.Surface = surfaceOf(a)
		meter.Describe = describe.Options{TypeScript: a.Config.SchemaCompression, MaxDescription: app.MaxDescription(a.Config)}
		forms := a.Config.ResultForms
		meter.Compress = compress.Options{
			TOON: a.Config.ToonCompression && forms&conf.FormTOON != 0, JS: a.Config.ToonCompression && forms&conf.FormJS != 0,
		}
		report.Catalogue = meter.Catalogue(snap, notes)
	}
	if cmd.Results != "" {
		results, err := meter.Results(os.DirFS(cmd.Results), cmd.Exclude)
		if err != nil {
			return nil, fmt.Errorf("measuring results in %s: %w", cmd.Results, err)
		}
		report.Results = results
	}
	return report, nil
}

// assemble makes the app whose servers are measured: those of the config or, with --demo, those of the demo. With --tools, the
// tools come from files, and only the settings of the app are used.
func (cmd *budgetCommand) assemble(ctx context.Context, c *cli, s streams) (*app.App, error) {
	if cmd.Demo || cmd.Tools != "" && c.Config == "" {
		return app.New(app.Options{Profile: app.Demo, Log: c.logger(s, "error", "text")})
	}
	var cfg *config.Config
	var err error
	if cmd.Tools != "" {
		s.absent = true
		cfg, err = config.Load(c.Config, s.reading()) // without secrets, because no server starts
	} else {
		cfg, err = c.loadServers(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return app.New(app.Options{Config: cfg, Profile: app.Measure, Log: c.logger(s, "error", cfg.LogFormat)})
}

// servers returns the servers to measure and, as the second result, notes for the user. With --tools, it reads the servers from
// files. Otherwise it returns the servers of the config or the demo, and connects to those whose catalogue is not on disk.
func (cmd *budgetCommand) servers(ctx context.Context, a *app.App) (*catalog.Snapshot, []string, error) {
	if cmd.Tools != "" {
		snap, notes, err := budget.ReadTools(os.DirFS(cmd.Tools))
		if err != nil {
			err = fmt.Errorf("reading tools in %s: %w", cmd.Tools, err)
		}
		return snap, notes, err
	}
	a.Registry.Start()
	a.Registry.WaitTried(ctx)
	return a.Executor.Catalogue(nil), nil, ctx.Err()
}
