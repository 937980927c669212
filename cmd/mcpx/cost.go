package main

import (
	"fmt"
	"strconv"

	"mcpx/internal/app"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
)

// cost is what the servers on this machine use while all of them run.
type cost struct {
	Servers int `json:"servers"`
	// Lazy is how many of them start only with their first call.
	Lazy int `json:"lazy"`
	// Processes and MemoryBytes are 0 if the operating system does not report them.
	Processes   int   `json:"processes,omitempty"`
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Slowest is the time that the slowest server took to start, in seconds.
	Slowest float64 `json:"slowest_start,omitempty"`
}

// costOf measures the servers that a check has just started. It returns nil if none of them runs on this
// machine.
func costOf(a *app.App) *cost {
	c := &cost{}
	for _, server := range a.Config.Servers {
		status, ok := a.Registry.Status(server.Name)
		if !ok || server.Type != config.Stdio || status.Protocol == "" {
			continue
		}
		c.Servers++
		if server.Start == "lazy" {
			c.Lazy++
		}
		c.Slowest = max(c.Slowest, status.Took.Seconds())
	}
	if c.Servers == 0 {
		return nil
	}
	all, _ := proc.Usage()
	used := proc.Sum(all)
	c.Processes, c.MemoryBytes = used.Processes, used.Memory
	return c
}

// String describes what the servers cost, and how much would be saved if they started with their first call.
func (c *cost) String() string {
	servers, takes := terminal.Count(c.Servers, "server"), "run"
	if c.Servers == 1 {
		takes = "runs"
	}
	if c.Processes > 0 {
		take := map[bool]string{true: "takes", false: "take"}[c.Servers == 1]
		takes = fmt.Sprintf("%s %s and %s of memory", take, processes(c.Processes), megabytes(c.MemoryBytes))
	}
	switch {
	case c.Lazy == c.Servers:
		return fmt.Sprintf(`%s of this machine %s, from the first call on only ("start": "lazy")`, servers, takes)
	case c.Lazy > 0:
		return fmt.Sprintf(`%s of this machine %s for each client that starts mcpx, but for %d that start with the first call ("start": "lazy")`,
			servers, takes, c.Lazy)
	}
	return fmt.Sprintf(`%s of this machine %s for each client that starts mcpx; with "start": "lazy" in the config none before the first call, `+
		`which then waits for its server (here at most %s)`, servers, takes, seconds(c.Slowest))
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strconv.Itoa(n) + " processes"
}

func megabytes(bytes int64) string {
	if bytes >= 1e9 {
		return strconv.FormatFloat(float64(bytes)/1e9, 'f', 1, 64) + " GB"
	}
	return strconv.FormatInt(max(1, bytes/1e6), 10) + " MB"
}
