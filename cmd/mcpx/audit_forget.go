package main

import (
	"context"
	"errors"
	"fmt"

	"mcpx/internal/app"
)

type auditForgetCommand struct {
	File string `arg:"" help:"The trail; its rotated parts are in the same folder." type:"path"`
	User string `env:"MCPX_AUDIT_USER" required:"" help:"The principal, as mcpx audit report names it." placeholder:"NAME"`
	trailFlags
	Yes bool `help:"Do not ask."`
}

func (cmd *auditForgetCommand) Help() string {
	return "Stop mcpx first. The name of the principal becomes a pseudonym in every line; display name, subject and addresses are removed. What it did " +
		"stays, and mcpx audit verify accepts the trail: its lines get new HMACs, and a line at its end says so. Copies of the trail elsewhere " +
		"keep the name.\n\n" + examples("mcpx audit forget audit.jsonl --user ann@example.com@login.example.com")
}

func (cmd *auditForgetCommand) Run(ctx context.Context, c *cli, s streams) error {
	var flags []string // for hints, as the user gave them
	for _, file := range cmd.KeyFile {
		flags = append(flags, "--key-file", file)
	}
	if cmd.Anchor != "" {
		flags = append(flags, "--anchor", cmd.Anchor)
	}
	keys, err := cmd.keys(ctx, c, s, cmd.File)
	if err != nil {
		return err
	}
	if err := cmd.findAnchor(cmd.File); err != nil {
		return err
	}
	question := fmt.Sprintf("Replace %s in %s? This cannot be undone.", cmd.User, cmd.File)
	yes, err := (&asker{s: s, yes: cmd.Yes}).ask(ctx, question, c.hint(append([]string{"audit", "forget", cmd.File, "--user", cmd.User, "--yes"}, flags...)...))
	if err != nil || !yes {
		return err
	}
	pseudonym, lines, err := app.ForgetAudit(cmd.File, keys, cmd.Anchor, cmd.User)
	switch {
	case errors.Is(err, app.ErrAuditKey):
		return fmt.Errorf("%s: %w; give --key-file, or --config with its audit.key", cmd.File, err)
	case err != nil:
		return err
	case lines == 0:
		return &hintError{cmd.User + " is not in " + cmd.File, c.hint(append([]string{"audit", "report", cmd.File, "--by", "user"}, flags...)...) + " names all"}
	}
	fmt.Fprintf(s.out, "%s is %s now, in %s\n", cmd.User, pseudonym, plural(lines, "line", "lines"))
	return nil
}
