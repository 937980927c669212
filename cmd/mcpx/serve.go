package main

import (
	"context"
	"fmt"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/front"
	"mcpx/internal/httpd"
)

// closeWithin bounds the end of all upstreams when mcpx itself ends: clients
// kill it 2 s after they closed its stdin.
const closeWithin = 500 * time.Millisecond

type serveCommand struct {
	HTTP string `name:"http" help:"Serve streamable HTTP at this address instead, for example 127.0.0.1:8080." placeholder:"ADDR"`
	Demo bool   `help:"Serve the demo's sample servers instead of a config."`
}

// Run serves until the input ends or a signal comes.
func (cmd *serveCommand) Run(ctx context.Context, c *cli, s streams) error {
	a, err := cmd.assemble(c, s)
	if err != nil {
		return err
	}
	a.logWarnings()
	if cmd.HTTP != "" {
		return cmd.serveHTTP(ctx, a)
	}
	if s.terminal {
		fmt.Fprintln(s.err, "mcpx: waiting for an MCP client on stdin; this is for a client's configuration, not for typing.")
		fmt.Fprintln(s.err, "mcpx: try: mcpx demo, mcpx check, mcpx inspect, or mcpx serve --http 127.0.0.1:8080. Ctrl-C ends.")
	}
	a.registry.Start()
	err = a.front.ServeStdio(ctx, s.in, s.out, front.StdioOptions{
		MaxMessage: a.config.MaxMessageBytes, Grace: grace(a),
	})
	a.close(closeWithin)
	return err
}

func (cmd *serveCommand) assemble(c *cli, s streams) (*app, error) {
	if cmd.Demo {
		level := c.LogLevel
		if level == "" {
			level = "warn"
		}
		return assembleDemo(newLogger(s.err, level, "text"))
	}
	cfg, err := c.loadConfig(s)
	if err != nil {
		return nil, err
	}
	return assemble(cfg, c.logger(s, cfg, false), ""), nil
}

// grace leaves, of shutdown_grace, what closing the upstreams takes.
func grace(a *app) time.Duration {
	return max(a.config.ShutdownGrace-2*closeWithin, 100*time.Millisecond)
}

func (cmd *serveCommand) serveHTTP(ctx context.Context, a *app) error {
	listener, err := httpd.Listen(ctx, cmd.HTTP)
	if err != nil {
		return err
	}
	a.registry.Start()
	a.log.Info("serving", "url", "http://"+listener.Addr().String()+"/mcp")
	err = httpd.Serve(ctx, listener, httpd.Options{
		Endpoint: a.front.HTTP(),
		MaxBody:  a.config.MaxMessageBytes,
		Grace:    grace(a),
		Ready:    a.ready,
		Logger:   a.log,
	})
	a.close(closeWithin)
	return err
}

// ready says whether every server has a catalogue or was tried, with counts.
func (a *app) ready() (bool, any) {
	snap := a.registry.Snapshot()
	waiting, counts := 0, make(map[catalog.State]int)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		counts[s.State]++
		if !s.Known && s.State == catalog.Connecting {
			waiting++
		}
	}
	return waiting == 0, map[string]any{
		"ready": waiting == 0, "servers": len(snap.Servers), "tools": snap.Tools(), "states": counts,
	}
}
