package main

import (
	"fmt"
	"os"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/savings"
)

type statsCommand struct {
	Days int    `help:"Count this many days, with today as the last one." default:"30" placeholder:"N"`
	By   string `help:"Show server, tool, client or day." enum:"server,tool,client,day" default:"server" placeholder:"WHAT"`
	All  bool   `help:"Print all rows, even if they are more than the screen has."`
	JSON bool   `name:"json" help:"Print the figures as JSON."`
	SVG  string `name:"svg" help:"Write a bar chart to this file as well." placeholder:"FILE" type:"path"`
}

func (cmd *statsCommand) Help() string {
	return "Three figures, because they mean different things. DEFINITIONS: what the definitions of all tools have more than those of mcpx, " +
		"once for each session, less the answers of inspect; a model carries them in every request, and how many it makes mcpx cannot see. " +
		"COMPRESSION: what shorter forms of results saved. CUT: what was left behind a handle because a result was too long, less what was " +
		"read of it later.\n\nThey are of this machine and this config, for up to 400 days.\n\n" +
		examples("mcpx stats", "mcpx stats --days 7 --by tool", "mcpx stats --by day --svg savings.svg")
}

// Validate reports an invalid value as a usage error.
func (cmd *statsCommand) Validate() error {
	if cmd.Days < 1 || cmd.Days > savings.KeptDays {
		return fmt.Errorf("--days: must be from 1 to %d", savings.KeptDays)
	}
	return nil
}

func (cmd *statsCommand) Run(c *cli, s streams) error {
	path, err := c.findConfig(s)
	if err != nil {
		return err
	}
	report, err := app.SavedBy(path, cmd.Days, cmd.By)
	if err != nil {
		return fmt.Errorf("reading the savings: %w", err)
	}
	if cmd.SVG != "" {
		if err := os.WriteFile(cmd.SVG, savings.Chart(report), 0o644); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
	}
	if cmd.JSON {
		return printJSON(s.out, report)
	}
	cmd.print(s, report)
	return nil
}

// figure returns a number of saved tokens for a table: green if mcpx has saved tokens, yellow if it has cost some (a negative
// number), "-" for 0.
func figure(sc terminal.Screen, n int64) string {
	switch text := terminal.Number(int(n)); {
	case n > 0:
		return sc.Green(text)
	case n < 0:
		return sc.Yellow(text)
	default:
		return "-"
	}
}

// linesAroundStats is how many lines of the screen mcpx stats needs above and below the rows of its table.
const linesAroundStats = 14

func (cmd *statsCommand) print(s streams, r *savings.Report) {
	sc := s.screen
	if len(r.Rows) == 0 {
		fmt.Fprint(s.out, sc.Hang("", fmt.Sprintf("Nothing was counted since %s. Figures come some seconds after the first sessions and calls of mcpx serve.", r.Since)))
		return
	}
	fmt.Fprintf(s.out, "%s\n\n", sc.Bold("Tokens saved since "+r.Since))
	rows := []terminal.Row{{Cells: []string{strings.ToUpper(r.By), "CALLS", "DEFINITIONS", "COMPRESSION", "CUT"}}}
	add := func(name string, f savings.Figures) {
		calls := "-"
		if f.Calls > 0 {
			calls = terminal.Number(int(f.Calls))
		}
		rows = append(rows, terminal.Row{Cells: []string{
			sanitize.Line(name, 0), calls, figure(sc, f.Definitions), figure(sc, f.Compression), figure(sc, f.Cut),
		}})
	}
	shown := r.Rows
	if room := sc.Height() - linesAroundStats; !cmd.All && sc.Height() > 0 {
		shown = r.Fewer(max(room, 5))
	}
	for _, row := range shown {
		add(row.Name, row.Figures)
	}
	if len(shown) > 1 {
		rows = append(rows, terminal.Row{})
		add("all", r.Total)
	}
	fmt.Fprint(s.out, sc.Table(1, rows), "\n")
	for _, line := range notesOnStats(r) {
		fmt.Fprint(s.out, sc.Hang(terminal.Pad(line[0], 13), line[1]))
	}
	fmt.Fprint(s.out, "\n", sc.Dim(strings.TrimSuffix(sc.Wrap(0, "Tokens are estimates of "+r.Encoding+"."), "\n")), "\n")
}

// notesOnStats returns notes that explain the columns of the table. Each note is a pair of a name and a text.
func notesOnStats(r *savings.Report) [][2]string {
	t := r.Total
	notes := [][2]string{
		{"DEFINITIONS", fmt.Sprintf("of all tools, less mcpx's own and the answers of inspect; counted once a session (%s), as mcpx cannot see how many requests carried them", terminal.Count(int(t.Sessions), "session"))},
		{"COMPRESSION", fmt.Sprintf("of results; clients got %s of %s tokens", terminal.Number(int(t.Sent)), terminal.Number(int(t.Received)))},
		{"CUT", "left behind a handle and not read on"},
	}
	if t.LeftOut != 0 {
		notes = append(notes, [2]string{"Not counted", fmt.Sprintf("%s tokens that were left out by select, grep and programs", terminal.Number(int(t.LeftOut)))})
	}
	return notes
}
