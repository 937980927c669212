package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/sanitize"
)

type auditReportCommand struct {
	File string `arg:"" optional:"" help:"The trail; without it, the one of the config." type:"path"`
	By   string `help:"Add up by user, server, tool or day." enum:"user,server,tool,day" default:"user"`
	User string `env:"MCPX_AUDIT_USER" help:"Only this principal, as the report by user names it; with --json its records too." placeholder:"NAME"`
	Days int    `help:"Only the last so many days." placeholder:"N"`
	JSON bool   `name:"json" help:"Print JSON."`
	CSV  bool   `name:"csv" help:"Print CSV, for spreadsheets."`
	trailFlags
}

func (cmd *auditReportCommand) Help() string {
	return "Reads the trail with all its parts, and says if it is not as it was written; it then ends with 1. " +
		"--user NAME --json prints everything that the trail has about somebody.\n\n" +
		examples("mcpx audit report --by user --days 30", "mcpx audit report audit.jsonl --by tool --csv",
			"mcpx audit report --user ann@example.com@login.example.com --json")
}

// Run prints the sums of the calls in the trail, and the faults of the trail.
func (cmd *auditReportCommand) Run(ctx context.Context, c *cli, s streams) error {
	if cmd.JSON && cmd.CSV {
		return &usageError{hintError{"--json and --csv exclude each other", ""}}
	}
	if err := cmd.find(ctx, c, s); err != nil {
		return err
	}
	keys, err := cmd.keys(ctx, c, s, cmd.File)
	if err != nil {
		fmt.Fprintln(s.err, "mcpx: warning:", err)
	}
	if err := cmd.findAnchor(cmd.File); err != nil {
		return err
	}
	q := app.AuditQuestion{By: cmd.By, User: cmd.User, Records: cmd.User != "" && cmd.JSON}
	if cmd.Days > 0 {
		q.Since = time.Now().AddDate(0, 0, -cmd.Days)
	}
	used, err := app.AuditUse(cmd.File, keys, cmd.Anchor, q)
	if err != nil {
		return err
	}
	switch {
	case cmd.JSON:
		err = cmd.json(used, s)
	case cmd.CSV:
		err = cmd.csv(used, s)
	default:
		err = cmd.table(used, s)
	}
	if err != nil {
		return err
	}
	return cmd.printFaults(used, s)
}

// find sets File to the audit trail of the config, unless the user gave a file.
func (cmd *auditReportCommand) find(ctx context.Context, c *cli, s streams) error {
	if cmd.File != "" {
		return nil
	}
	cfg, err := c.loadServers(ctx, s)
	if err != nil {
		return err
	}
	if cfg.Audit == nil {
		return &hintError{cfg.Path + " has no audit trail", `"audit": {"file": "audit.jsonl"} makes one; mcpx audit report FILE reads another`}
	}
	cmd.File = cfg.Audit.File
	return nil
}

// printFaults prints a warning if the trail cannot be checked or records are missing. If the trail was changed, it prints the
// faults and returns errFailed, which makes mcpx exit with 1.
func (cmd *auditReportCommand) printFaults(used *app.AuditUsed, s streams) error {
	if faults := used.Report.Faults; len(faults) > 0 {
		for _, fault := range faults {
			fmt.Fprintln(s.err, fault)
		}
		fmt.Fprintf(s.err, "mcpx: error: the trail is NOT as it was written (%d faults): do not trust these numbers\n", len(faults))
		return errFailed
	}
	if !used.Checked {
		fmt.Fprintln(s.err, "mcpx: warning: without the key of the trail (--key-file) changed lines are not found")
	}
	if n := used.Report.Lost; n > 0 {
		fmt.Fprintf(s.err, "mcpx: warning: %d records could not be written and are not counted\n", n)
	}
	return nil
}

func (cmd *auditReportCommand) json(used *app.AuditUsed, s streams) error {
	out := map[string]any{"by": cmd.By, "usage": used.Usage, "checked": used.Checked, "first": used.Report.First, "last": used.Report.Last}
	if used.Usage == nil {
		out["usage"] = []any{}
	}
	var faults []string
	for _, fault := range used.Report.Faults {
		faults = append(faults, fault.String())
	}
	if faults != nil {
		out["faults"] = faults
	}
	if cmd.User != "" {
		out["user"], out["records"] = cmd.User, used.Records
	}
	encoder := json.NewEncoder(s.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// columns are the titles of the CSV columns from the third on. The first title is the value of --by, the second is "display".
var columns = []string{"calls", "failures", "tokens", "tokens_received", "bytes", "bytes_received", "argument_bytes"}

func (cmd *auditReportCommand) csv(used *app.AuditUsed, s streams) error {
	out := bufio.NewWriter(s.out)
	fmt.Fprintf(out, "%s,display,%s\n", cmd.By, strings.Join(columns, ","))
	for _, u := range used.Usage {
		fmt.Fprintf(out, "%s,%s,%d,%d,%d,%d,%d,%d,%d\n", spreadsheetCell(u.Name), spreadsheetCell(u.Display),
			u.Calls, u.Failures, u.Tokens, u.TokensReceived, u.Bytes, u.BytesReceived, u.ArgumentBytes)
	}
	return out.Flush()
}

// spreadsheetCell returns text as one quoted CSV cell. Clients choose the names in a trail, and spreadsheets run a cell that begins
// with certain characters (below) as a formula. The quotes are needed because some spreadsheets end a cell at a semicolon.
func spreadsheetCell(text string) string {
	text = sanitize.Line(text, 300)
	if text != "" && strings.ContainsRune("=+-@\t\r|%＝＋－＠", []rune(text)[0]) {
		text = "'" + text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func (cmd *auditReportCommand) table(used *app.AuditUsed, s streams) error {
	out := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "%s\tcalls\tfailures\ttokens\tbytes\n", cmd.By)
	for _, u := range used.Usage {
		name := sanitize.Line(u.Name, 120)
		if name == "" {
			name = "(nobody)"
		}
		if u.Display != "" {
			name += " (" + sanitize.Line(u.Display, 80) + ")"
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\n", name, u.Calls, u.Failures, u.Tokens, u.Bytes)
	}
	return out.Flush()
}
