package main

import (
	"context"
	"fmt"
	"strings"
)

type disconnectCommand struct {
	Client string `arg:"" help:"The client."`
	Yes    bool   `short:"y" help:"Write without asking."`
	File   string `help:"The client's file, if it is another than the usual one." placeholder:"FILE" type:"path"`
}

// Help has the examples.
func (cmd *disconnectCommand) Help() string {
	return `Brings back the client's file as it was before "mcpx connect", byte for byte. Where the file has changed since, only the entry
of mcpx is taken out, and the servers that were moved are put back.

` + examples("mcpx disconnect cursor", "mcpx disconnect claude-code --yes")
}

// Run disconnects the client.
func (cmd *disconnectCommand) Run(ctx context.Context, c *cli, s streams) error {
	sys, err := s.system()
	if err != nil {
		return err
	}
	client, err := findClient(cmd.Client)
	if err != nil {
		return err
	}
	file, again := cmd.File, "mcpx disconnect "+client.ID+" --yes"
	if file == "" {
		file = client.File(sys)
	} else {
		again += " --file " + file
	}
	kept, err := backups()
	if err != nil {
		return err
	}
	change, err := kept.Disconnect(client, file, s.reading())
	if err != nil {
		return err
	}
	if change.Nothing() {
		fmt.Fprintf(s.out, "mcpx is not in %s\n", sys.Short(file))
		return nil
	}
	if ok, err := (&asker{s: s, yes: cmd.Yes}).askFor(ctx, change, sys, again); err != nil || !ok {
		return err
	}
	backup, err := kept.Undo(change)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "disconnected %s: %s\n", client.Name, client.Restart)
	if change.Exact {
		fmt.Fprintln(s.out, "the file is what it was before, byte for byte")
	} else {
		back := ""
		if len(change.Restored) > 0 {
			back = ", and put back " + strings.Join(change.Restored, ", ")
		}
		fmt.Fprintf(s.out, "the file is not what mcpx left there: took out mcpx%s; the rest stays. As it was a moment ago: %s\n",
			back, sys.Short(backup))
	}
	return nil
}
