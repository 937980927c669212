package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/share"
)

// cost says how much memory and how many processes the servers on this machine use while all of them run.
type cost struct {
	Servers int `json:"servers"`
	// Lazy is how many of the servers start only with their first call.
	Lazy int `json:"lazy"`
	usage
	// Slowest is the time that the slowest server took to start, in seconds.
	Slowest float64 `json:"slowest_start,omitempty"`
	// Often groups the servers by how many times the daemon runs each of them. It is empty if sessions do not use the daemon,
	// because each session then runs all servers.
	Often []often `json:"often,omitempty"`
}

// usage is what processes use. Its numbers are 0 if the operating system does not report them.
type usage struct {
	Processes   int   `json:"processes,omitempty"`
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// often is a group of servers, with what they use together. Share says how many times the daemon runs each server of the group:
// once for each session, once for all sessions in a folder, or once for all sessions of the user.
type often struct {
	Share   conf.Share `json:"share"`
	Servers []string   `json:"servers"`
	usage
	lazy int // how many of the servers start with their first call
}

// costOf measures the servers that a check has just started. daemon means that sessions use the daemon. It returns nil if none
// of them runs on this machine and has answered.
func costOf(a *app.App, daemon bool) *cost {
	c := &cost{}
	all, _ := proc.Usage() // in the daemon, this includes the servers of other sessions
	kinds := []often{{Share: conf.ShareUser}, {Share: conf.ShareFolder}, {Share: conf.ShareSession}}
	for i := range a.Config.Servers {
		server := &a.Config.Servers[i]
		status, ok := a.Registry.Status(server.Name)
		if !ok || server.Type != config.Stdio || status.Protocol == "" {
			continue
		}
		c.Servers++
		c.Slowest = max(c.Slowest, status.Took.Seconds())
		kind := &kinds[slices.IndexFunc(kinds, func(k often) bool { return k.Share == share.Of(server).Share })]
		kind.Servers = append(kind.Servers, server.Name)
		if server.Start == "lazy" {
			c.Lazy++
			kind.lazy++
		}
		for _, pid := range a.Registry.PIDs(server.Name) {
			kind.Processes += all[pid].Processes
			kind.MemoryBytes += all[pid].Memory
		}
	}
	for _, kind := range kinds {
		c.Processes += kind.Processes
		c.MemoryBytes += kind.MemoryBytes
	}
	if c.Servers == 0 {
		return nil
	}
	if daemon {
		c.Often = slices.DeleteFunc(kinds, func(k often) bool { return len(k.Servers) == 0 })
	}
	return c
}

// usesDaemon reports whether sessions over stdio use the daemon when they have this config.
func (c *cli) usesDaemon(cfg *config.Config) bool {
	return runtime.GOOS != "windows" && c.Daemon && cfg.Daemon
}

// lines returns lines for the user that say what the servers cost. If sessions use the daemon, the lines say how many times each
// server runs; otherwise they say what "start": "lazy" would save.
func (c *cost) lines() []string {
	servers, takes := terminal.Count(c.Servers, "server"), "run"
	if c.Servers == 1 {
		takes = "runs"
	}
	if c.Processes > 0 {
		takes = map[bool]string{true: "takes ", false: "take "}[c.Servers == 1] + c.usage.String()
	}
	text := fmt.Sprintf("%s of this machine %s", servers, takes)
	if len(c.Often) > 0 {
		lines := []string{text + ", if all of them run:"}
		for _, kind := range c.Often {
			lines = append(lines, "  "+kind.String())
		}
		return lines
	}
	switch {
	case c.Lazy == c.Servers:
		text += `, from the first call on only ("start": "lazy")`
	case c.Lazy > 0:
		text += fmt.Sprintf(` for each client that starts mcpx, but for %d that start with the first call ("start": "lazy")`, c.Lazy)
	default:
		text += fmt.Sprintf(` for each client that starts mcpx; with "start": "lazy" in the config none before the first call, `+
			`which then waits for its server (here at most %s)`, seconds(c.Slowest))
	}
	return []string{text}
}

func (o often) String() string {
	times := map[conf.Share]string{
		conf.ShareUser: "once for all sessions", conf.ShareFolder: "once for the sessions of each folder", conf.ShareSession: "once for each session",
	}[o.Share]
	switch {
	case o.Share == conf.ShareSession || o.lazy == len(o.Servers):
		times += ", from its first call on"
	case o.lazy == 0:
		times += ", from the first one on"
	}
	text := times + ": " + strings.Join(o.Servers[:min(len(o.Servers), 8)], ", ")
	if more := len(o.Servers) - 8; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if o.Processes > 0 {
		text += " (" + o.usage.String() + ")"
	}
	return text
}

func (u usage) String() string {
	return terminal.Count(u.Processes, "process") + " and " + megabytes(u.MemoryBytes) + " of memory"
}

func megabytes(bytes int64) string {
	if bytes >= 1e9 {
		return strconv.FormatFloat(float64(bytes)/1e9, 'f', 1, 64) + " GB"
	}
	return strconv.FormatInt(max(1, bytes/1e6), 10) + " MB"
}
