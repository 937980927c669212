package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/catalog"
	"mcpx/internal/plain"
)

type checkCommand struct{}

// Run connects to every server once, prints the outcome, and keeps the
// catalogues on disk.
func (cmd *checkCommand) Run(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadConfig(s)
	if err != nil {
		return err
	}
	a := app.New(cfg, c.logger(s, cfg, true), "")
	fmt.Fprintf(s.out, "config  %s\n", cfg.Path)
	for _, warning := range cfg.Warnings {
		fmt.Fprintf(s.out, "warning %s\n", warning)
	}
	a.Registry.Start()
	defer a.Close()
	slow := tryAll(ctx, a, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = cmd.print(a, s)
	for _, name := range slow {
		sayDownload(s.err, name)
	}
	return err
}

func (cmd *checkCommand) print(a *app.App, s streams) error {
	snap := a.Executor.Catalogue(nil)
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nSERVER\tSTATE\tERA\tTRANSPORT\tTOOLS\tTIME\tNOTE")
	down := 0
	for i := range snap.Servers {
		server := &snap.Servers[i]
		era, took, note := "-", "-", server.Reason
		if status, ok := a.Registry.Status(server.Name); ok && status.Protocol != "" {
			era = status.Protocol
			took = status.Took.Round(time.Millisecond).String()
			if note == "" && len(status.Faults) > 0 {
				note = fmt.Sprintf("%d tools refused: %s", len(status.Faults), status.Faults[0])
			}
		}
		if note == "" {
			note = server.Hidden
		}
		transport, tools := server.Transport, "-"
		if transport == "" {
			transport = "-"
		}
		if server.Known {
			tools = strconv.Itoa(len(server.Tools))
		}
		if server.State != catalog.Ready && server.State != catalog.Disabled {
			down++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", server.Name, server.State, era, transport, tools, took, plain.Line(note, 400))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(snap.Servers) == 0 {
		fmt.Fprintln(s.out, "\nno servers are configured")
		return nil
	}
	fmt.Fprintf(s.out, "\n%s: %s; %s\n", count(len(snap.Servers), "server"), states(snap), count(snap.Tools(), "tool"))
	if saved := app.LoadSavings(); saved.Calls > 0 {
		fmt.Fprintf(s.out, "results since %s: %d calls, about %d tokens received, %d sent\n",
			saved.Since.Format(time.DateOnly), saved.Calls, saved.Received, saved.Sent)
	}
	if down > 0 {
		return &failure{exitFailed}
	}
	return nil
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// states counts servers by state, for people.
func states(snap *catalog.Snapshot) string {
	counts := make(map[catalog.State]int)
	for i := range snap.Servers {
		counts[snap.Servers[i].State]++
	}
	var parts []string
	for _, state := range []catalog.State{catalog.Ready, catalog.Degraded, catalog.Connecting, catalog.Unavailable, catalog.Disabled} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(parts, ", ")
}
