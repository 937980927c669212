package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"mcpx/internal/app"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check that no line of an audit trail was removed or changed."`
	Forget auditForgetCommand `cmd:"" help:"Replace a principal in an audit trail by a pseudonym."`
	Report auditReportCommand `cmd:"" help:"Add up the calls of an audit trail, by user, server, tool or day."`
}

func (cmd *auditCommand) Help() string {
	return examples("mcpx audit verify /var/log/mcpx/audit.jsonl", "mcpx audit report --by user --days 30")
}

type auditVerifyCommand struct {
	File string `arg:"" help:"The file of the config key audit; its rotated parts are in the same folder." type:"path"`
	trailFlags
	Accept bool `help:"Accept that the trail begins and ends where it does now: after you moved or removed files yourself."`
}

func (cmd *auditVerifyCommand) Help() string {
	return "Reads the trail with all its parts, and names each place where lines are missing, changed or inserted. Changes can be found only " +
		"in a trail with a key. Lines removed from its beginning or its end are found by the anchor, a file that mcpx keeps in the folder " +
		"of the user it runs as: without it, compare the number and HMAC of the last line, which this prints.\n\n" +
		examples("mcpx audit verify /var/log/mcpx/audit.jsonl", "mcpx audit verify audit.jsonl --key-file audit.key",
			"mcpx audit verify audit.jsonl --accept")
}

// Run prints a summary of the audit trail, and each fault in it. With --accept, it first stores the present state of the trail in
// the anchor, the file against which the trail is checked.
func (cmd *auditVerifyCommand) Run(ctx context.Context, c *cli, s streams) error {
	keys, err := cmd.keys(ctx, c, s, cmd.File)
	if err != nil {
		return err
	}
	if err := cmd.findAnchor(cmd.File); err != nil {
		return err
	}
	if cmd.Accept {
		err = app.AcceptAudit(cmd.File, keys, cmd.Anchor)
	}
	var r *app.AuditReport
	if err == nil {
		r, err = app.VerifyAudit(cmd.File, keys, cmd.Anchor)
	}
	if errors.Is(err, app.ErrAuditKey) {
		return fmt.Errorf("%s: %w; give --key-file, or --config with its audit.key", cmd.File, err)
	}
	if err != nil {
		return err
	}
	for _, fault := range r.Faults {
		fmt.Fprintln(s.out, fault)
	}
	cmd.summary(r, len(keys) > 0, s)
	if len(r.Faults) > 0 {
		return errFailed
	}
	return nil
}

// trailFlags are the flags of the commands that read an audit trail.
type trailFlags struct {
	KeyFile []string `help:"A file with the key, again for each older key, the newest first; without it, the keys of the config are used if the config names the same file." placeholder:"FILE" type:"path" sep:"none"`
	Anchor  string   `help:"The anchor of the trail; without it, the one of this user." placeholder:"FILE" type:"path"`
}

// findAnchor sets Anchor to the default path of the trail's anchor, unless the user gave another path.
func (f *trailFlags) findAnchor(trail string) (err error) {
	if f.Anchor == "" {
		f.Anchor, err = app.AuditAnchor(trail)
	}
	return err
}

// keys returns the keys in the files of --key-file, the newest first. Without the flag, it returns the keys in the config, but only
// if the config names this trail or the user has given the config with --config. Otherwise it returns nil.
func (f *trailFlags) keys(ctx context.Context, c *cli, s streams, trail string) (keys []string, err error) {
	for _, file := range f.KeyFile {
		key, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, strings.TrimRight(string(key), "\r\n"))
	}
	if len(keys) > 0 {
		return keys, nil
	}
	path, err := c.findConfig(s)
	if err != nil && c.Config != "" {
		return nil, err
	}
	if err != nil { // no error: the trail may come from another machine, so the config and its keys may be missing here
		return nil, nil
	}
	s.absent = true
	cfg, err := readConfig(ctx, path, s)
	if err != nil {
		return nil, err
	}
	if cfg.Audit == nil || cfg.Audit.File != trail && c.Config == "" {
		return nil, nil
	}
	for _, key := range cfg.Audit.Keys {
		if strings.Contains(key, "${") {
			return nil, &hintError{"audit.key has no value here: " + key, "set the variable, or give --key-file"}
		}
	}
	return cfg.Audit.Keys, nil
}

func (cmd *auditVerifyCommand) summary(r *app.AuditReport, keyed bool, s streams) {
	fmt.Fprintf(s.out, "%d lines in %d files, number %d to %d", r.Lines, len(r.Files), r.First, r.Last)
	if r.First > 1 {
		fmt.Fprintf(s.out, "; the lines before number %d are gone", r.First)
	}
	fmt.Fprintln(s.out)
	if !r.Anchored {
		fmt.Fprintf(s.out, "no anchor at %s: lines removed from the end cannot be found (--anchor names another)\n", cmd.Anchor)
	}
	for _, note := range []struct {
		count uint64
		text  string
	}{
		{r.Lost, "records could not be written; a line says where"},
		{uint64(r.Open), "calls began and have no end: mcpx ended during them, they still run, or their end could not be written"},
		{uint64(r.Unclosed), "runs of mcpx have no end: killed, or still running"},
		{uint64(r.Cut), "unfinished lines were cut when mcpx started again"},
	} {
		if note.count > 0 {
			fmt.Fprintf(s.out, "%d %s\n", note.count, note.text)
		}
	}
	switch {
	case len(r.Faults) > 0:
		fmt.Fprintf(s.out, "NOT as it was written: %d faults\n", len(r.Faults))
	case keyed && r.Chained:
		fmt.Fprintf(s.out, "as it was written; the last line is number %d, HMAC %s\n", r.Last, r.MAC)
	default:
		fmt.Fprintln(s.out, "no line is missing; changed lines can be found only with a key (audit.key)")
	}
}
