//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/terminal"
)

// daemonStatus runs mcpx status inside the daemon.
type daemonStatus struct {
	statusCommand
	daemon *daemon
}

// daemonState is the state of a daemon, in the form of mcpx status --json.
type daemonState struct {
	Running   bool           `json:"running"`
	PID       int            `json:"pid"`
	Config    string         `json:"config"`
	Version   string         `json:"version"`
	Since     time.Time      `json:"since"`
	Processes int            `json:"processes"`        // of the servers, including processes that the servers have started
	Memory    int64          `json:"memory,omitempty"` // the memory of these processes, in bytes
	Sessions  []sessionState `json:"sessions"`
	Page      string         `json:"page,omitempty"` // the address of the page of mcpx ui; empty if it is closed
}

// sessionState describes one session over stdio, or one app that commands such as mcpx exec share. Such an app has Kind "exec" and
// no PID.
type sessionState struct {
	Kind    string        `json:"kind"` // "stdio" or "exec"
	PID     int           `json:"pid,omitempty"`
	Folder  string        `json:"folder"`
	View    string        `json:"view,omitempty"`
	Since   time.Time     `json:"since"`
	Servers []serverState `json:"servers"`
}

type serverState struct {
	Name   string        `json:"name"`
	State  catalog.State `json:"state"`
	Reason string        `json:"reason,omitempty"`
	// PIDs are the processes of the server. A server that sessions share has the same PIDs in each session. Memory is in bytes and
	// includes the processes that the server started.
	PIDs   []int `json:"pids,omitempty"`
	Memory int64 `json:"memory,omitempty"`
}

func (d *daemon) state(config string) daemonState {
	state := daemonState{
		Running: true, PID: os.Getpid(), Config: config, Version: app.Version(), Since: d.began,
		Sessions: []sessionState{},
	}
	all, _ := proc.Usage()
	used := proc.Sum(all)
	state.Processes, state.Memory = used.Processes, used.Memory
	if page := d.page.current(); page != nil {
		state.Page = "http://" + page.links.Host + "/"
	}
	for _, one := range d.sorted() {
		state.Sessions = append(state.Sessions, sessionState{
			Kind: "stdio", PID: one.pid, Folder: one.folder, View: one.view, Since: one.began, Servers: serverStates(one.app, all),
		})
	}
	d.mu.Lock()
	kept := slices.SortedFunc(maps.Values(d.kept), func(a, b *keptApp) int { return a.began.Compare(b.began) })
	d.mu.Unlock()
	for _, one := range kept {
		state.Sessions = append(state.Sessions, sessionState{Kind: "exec", Folder: one.folder, Since: one.began, Servers: serverStates(one.app, all)})
	}
	return state
}

// serverStates returns the states of the servers that are not disabled. used says what each process uses, by its PID.
func serverStates(a *app.App, used map[int]proc.Used) []serverState {
	all := []serverState{}
	snap := a.Registry.Snapshot()
	for i := range snap.Servers {
		one := &snap.Servers[i]
		if one.State == catalog.Disabled {
			continue
		}
		state := serverState{Name: one.Name, State: one.State, Reason: one.Reason, PIDs: a.Registry.PIDs(one.Name)}
		for _, pid := range state.PIDs {
			state.Memory += used[pid].Memory
		}
		all = append(all, state)
	}
	return all
}

func (cmd *daemonStatus) runHere(_ context.Context, c *cli, s streams) error {
	state := cmd.daemon.state(c.Config)
	if cmd.JSON {
		data, err := json.Marshal(state)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, s.screen.JSON(string(data)))
		return err
	}
	fmt.Fprintf(s.out, "The daemon %d (mcpx %s) serves %s since %s.\n", state.PID, state.Version, state.Config, state.Since.Format(time.DateTime))
	fmt.Fprintf(s.out, "%s, %s of servers", terminal.Count(len(state.Sessions), "session"), terminal.Count(state.Processes, "process"))
	if state.Memory > 0 {
		fmt.Fprintf(s.out, " with %s", megabytes(state.Memory))
	}
	fmt.Fprintln(s.out)
	if state.Page != "" {
		fmt.Fprintf(s.out, "The page is open at %s; mcpx ui prints a link to it.\n", state.Page)
	}
	for _, one := range state.Sessions {
		var servers []string
		for _, server := range one.Servers {
			text := server.Name + " " + string(server.State)
			if server.Memory > 0 {
				text += " " + megabytes(server.Memory)
			}
			servers = append(servers, text)
		}
		who := one.Kind
		if one.PID != 0 {
			who += fmt.Sprintf(" %d", one.PID)
		}
		fmt.Fprint(s.out, s.screen.Hang(who+"  ", s.screen.Text(filepath.Clean(one.Folder)+": "+strings.Join(servers, ", "))))
	}
	return nil
}

// daemonLogs runs mcpx logs inside the daemon.
type daemonLogs struct {
	logsCommand
	daemon *daemon
}

func (cmd *daemonLogs) runHere(ctx context.Context, c *cli, s streams) error {
	known := cmd.Server == "" || slices.ContainsFunc(cmd.daemon.apps(), func(a *app.App) bool {
		_, ok := a.Registry.Status(cmd.Server)
		return ok
	})
	for position := int64(0); ; {
		lines, next, more := cmd.daemon.lines.From(position)
		position = next
		for line := range bytes.Lines(lines) {
			if cmd.Server != "" && !app.About(line, cmd.Server) {
				continue
			}
			if _, err := fmt.Fprintln(s.out, s.screen.Text(strings.TrimRight(string(line), "\n"))); err != nil {
				return err
			}
			known = true // there is a line about the server, perhaps from a session that has ended
		}
		if !known {
			return noServer(cmd.Server, c)
		}
		if !cmd.Follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// daemonRestart runs mcpx restart inside the daemon.
type daemonRestart struct {
	restartCommand
	daemon *daemon
}

func (cmd *daemonRestart) runHere(_ context.Context, c *cli, s streams) error {
	cmd.daemon.pool.Renew(cmd.Server)
	n := 0
	for _, a := range cmd.daemon.apps() {
		if a.Restart(cmd.Server) {
			n++
		}
	}
	if n == 0 {
		return noServer(cmd.Server, c)
	}
	_, err := fmt.Fprintf(s.out, "%s starts anew in %s\n", cmd.Server, terminal.Count(n, "session"))
	return err
}

// noServer returns the error for the name of a server that runs in no session.
func noServer(name string, c *cli) error {
	return &hintError{fmt.Sprintf("no session of the daemon has a server %q that runs", name), c.hint("status") + " shows them"}
}
