package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/httpd"
)

// closeWithin bounds the end of all upstreams when mcpx itself ends: clients
// kill it 2 s after they closed its stdin.
const closeWithin = 500 * time.Millisecond

type serveCommand struct {
	HTTP string `name:"http" help:"Serve streamable HTTP at this address instead, for example 127.0.0.1:8080." placeholder:"ADDR"`
	Demo bool   `help:"Serve the demo's sample servers instead of a config."`

	Watch bool `help:"Load the config file again when it changes, as SIGHUP does."`
}

// Run serves until the input ends or a signal comes.
func (cmd *serveCommand) Run(ctx context.Context, c *cli, s streams) error {
	defer surviveBrokenPipes()()
	stderr := newDroppingWriter(s.err)
	defer stderr.close()
	s.err = stderr
	a, err := cmd.assemble(c, s)
	if err != nil {
		return err
	}
	a.logWarnings(a.config)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !cmd.Demo {
		defer a.reloading(ctx, cancel, cmd.Watch, s)()
	}
	if cmd.HTTP != "" {
		return cmd.serveHTTP(ctx, a, s)
	}
	if s.terminal {
		fmt.Fprintln(s.err, "mcpx: waiting for an MCP client on stdin; this is for a client's configuration, not for typing.")
		fmt.Fprintln(s.err, "mcpx: try: mcpx demo, mcpx check, mcpx inspect, or mcpx serve --http 127.0.0.1:8080. Ctrl-C ends.")
	}
	a.start()
	if checked, ok := s.out.(*checkedWriter); ok {
		s.out = checked.Writer
	}
	err = a.front.ServeStdio(ctx, s.in, s.out, front.StdioOptions{
		MaxMessage: a.config.MaxMessageBytes, Grace: grace(a),
	})
	a.close(closeWithin)
	a.saveSavings()
	return a.ended("stdio", err)
}

// ended reports what ended serving, through the log: a stderr that nobody reads
// would hold up the end.
func (a *app) ended(over string, err error) error {
	if err == nil {
		return nil
	}
	a.log.Error("serving over "+over+" ended", "err", err)
	return &failure{exitFailed}
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

func (cmd *serveCommand) serveHTTP(ctx context.Context, a *app, s streams) error {
	listener, err := httpd.Listen(ctx, cmd.HTTP)
	if err != nil {
		return err
	}
	return cmd.serveOn(ctx, a, s, listener)
}

func (cmd *serveCommand) serveOn(ctx context.Context, a *app, s streams, listener net.Listener) error {
	a.start()
	if url := "http://" + listener.Addr().String() + "/mcp"; cmd.Demo {
		fmt.Fprintln(s.err, "mcpx: serving the demo at", url) // its log has only warnings
	} else {
		a.log.Info("serving", "url", url)
	}
	err := httpd.Serve(ctx, listener, httpd.Options{
		Endpoint: a.front.HTTP(),
		MaxBody:  a.config.MaxMessageBytes,
		Grace:    grace(a),
		EndCalls: a.front.EndCalls,
		Ready:    a.ready,
		Status:   a.status,
		Logger:   a.log,
	})
	a.close(closeWithin)
	a.saveSavings()
	return a.ended("HTTP", err)
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

// serverStatus is one server on the status page.
type serverStatus struct {
	Name       string            `json:"name"`
	State      catalog.State     `json:"state"`
	Reason     string            `json:"reason,omitempty"`
	RetryAfter float64           `json:"retry_after,omitempty"`
	Transport  string            `json:"transport,omitempty"`
	Protocol   string            `json:"protocol,omitempty"`
	Tools      int               `json:"tools"`
	Restarts   int               `json:"restarts"`
	Results    *executor.Account `json:"results,omitempty"`
}

// status is what /status says: servers, states, tools, calls, tokens saved.
func (a *app) status() any {
	snap, accounts := a.registry.Snapshot(), a.executor.Accounts()
	total := executor.Account{}
	servers := make([]serverStatus, 0, len(snap.Servers))
	for i := range snap.Servers {
		s := &snap.Servers[i]
		one := serverStatus{
			Name: s.Name, State: s.State, Reason: s.Reason, RetryAfter: s.RetryAfter,
			Transport: s.Transport, Protocol: s.Protocol, Tools: len(s.Tools),
		}
		if status, ok := a.registry.Status(s.Name); ok {
			one.Restarts = status.Restarts
		}
		if account, ok := accounts[s.Name]; ok {
			one.Results = &account
			total.Calls += account.Calls
			total.Received += account.Received
			total.Sent += account.Sent
		}
		servers = append(servers, one)
	}
	return map[string]any{"version": version(), "tools": snap.Tools(), "servers": servers, "results": total}
}
