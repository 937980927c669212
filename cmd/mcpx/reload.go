package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/control"
)

type reloadCommand struct{}

func (cmd *reloadCommand) Help() string {
	return "Tells every running mcpx of yours that reads this config file, and prints what each has changed. " +
		"A file with faults changes nothing, and mcpx reload ends with 2.\n\n" +
		examples("mcpx reload", "mcpx reload --config ~/mcp.json")
}

// Run makes each running mcpx that uses the config file load it again, and prints a line for each.
func (cmd *reloadCommand) Run(ctx context.Context, c *cli, s streams) error {
	path, err := c.findConfig(s)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	mine, others, silent := readers(ctx, path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case silent > 0 && len(mine) == 0:
		return &hintError{noAnswer(silent), "it is stopped, or too busy; try again, and restart it if that does not help"}
	case silent > 0:
		fmt.Fprintf(s.err, "mcpx: warning: %s\n", noAnswer(silent))
	case len(mine) == 0:
		hint := c.hint("serve") + " reads it when it starts"
		if slices.Sort(others); len(others) > 0 {
			hint = "name another file with --config; running: " + strings.Join(slices.Compact(others), ", ")
		}
		return &hintError{"no running mcpx reads " + path, hint}
	}
	outcomes, failures := make([]control.Outcome, len(mine)), make([]error, len(mine))
	var all sync.WaitGroup
	for i, one := range mine {
		all.Go(func() { outcomes[i], failures[i] = one.Reload(ctx) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return printOutcomes(s, mine, outcomes, failures)
}

// noAnswer returns a text that says how many processes do not answer. It is not known which config these processes use.
func noAnswer(silent int) string {
	return plural(silent, "running mcpx does", "running mcpx do") + " not answer"
}

// readers finds this user's running mcpx processes. processes has those that use the config file with this absolute path; the
// caller must close or reload each of them. others has the config files of the other processes. silent is the number of processes
// that do not answer.
func readers(ctx context.Context, path string) (processes []*control.Running, others []string, silent int) {
	running, silent := control.Find(ctx)
	for _, one := range running {
		if one.File == path || sameFile(one.File, path) {
			processes = append(processes, one)
			continue
		}
		one.Close()
		others = append(others, one.File)
	}
	slices.SortFunc(processes, func(a, b *control.Running) int { return cmp.Compare(a.PID, b.PID) })
	return processes, others, silent
}

// hintReload tells the user, after a change of the config file, how to make running mcpx processes use the change. It prints
// nothing if there are no such processes.
func (c *cli) hintReload(ctx context.Context, s streams, file string) {
	path, err := filepath.Abs(file)
	if err != nil {
		return
	}
	mine, _, _ := readers(ctx, path)
	for _, one := range mine {
		one.Close()
	}
	if len(mine) == 0 {
		return
	}
	fmt.Fprintf(s.out, "%s the file: %s makes it take the change\n", plural(len(mine), "running mcpx reads", "running mcpx read"), c.hint("reload"))
}

// printOutcomes prints how the reload of each process has ended. Each session of a daemon is a process here, with the PID of the
// daemon. If such sessions have ended alike, they share one line. The returned error determines the exit code.
func printOutcomes(s streams, processes []*control.Running, outcomes []control.Outcome, failures []error) (worst error) {
	type line struct {
		pid          int
		serves, text string
		failed       bool
	}
	var lines []line
	sessions := make(map[line]int)
	add := func(one *control.Running, failed bool, text string) {
		l := line{one.PID, one.Serves, text, failed}
		if sessions[l]++; sessions[l] == 1 {
			lines = append(lines, l)
		}
	}
	for i, one := range processes {
		out, err := outcomes[i], failures[i]
		switch {
		case err != nil:
			add(one, true, err.Error())
			worst = cmp.Or(worst, errFailed)
		case len(out.Refused) > 0:
			for _, fault := range out.Refused {
				add(one, true, "refused, the old config stays in force: "+s.errScreen.Text(fault))
			}
			if worst = cmp.Or(worst, errFailed); out.Faults {
				worst = errConfigFailed
			}
		default:
			add(one, false, changes(out))
		}
	}
	for _, l := range lines {
		who := fmt.Sprintf("%d (%s)", l.pid, l.serves)
		if n := sessions[l]; n > 1 {
			who = fmt.Sprintf("%d (%s, %d sessions)", l.pid, l.serves, n)
		}
		if l.failed {
			fmt.Fprintf(s.err, "mcpx: error: %s: %s\n", who, l.text)
		} else {
			fmt.Fprint(s.out, s.screen.Hang(who+"  ", s.screen.Text(l.text)))
		}
	}
	return worst
}

// changes describes in one line what a reload has changed.
func changes(out control.Outcome) string {
	var parts []string
	for _, part := range []struct {
		word  string
		names []string
	}{
		{"started ", out.Started}, {"stopped ", out.Stopped}, {"restarted ", out.Restarted}, {"changed ", out.Changed},
		{"in force: ", out.Keys}, {"after a restart: ", out.Later}, {"unavailable: ", out.Unavailable},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.word+strings.Join(part.names, ", "))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing has changed")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// listen opens the control socket, through which commands such as mcpx reload find and ask this process. It passes on each request
// for a reload to the channel requests. stop closes the socket. If the socket cannot be made, mcpx serves without one.
func (r *reloading) listen(requests chan<- app.ReloadRequest) (stop func()) {
	file, err := filepath.Abs(r.app.Config.Path)
	var socket *control.Socket
	if err == nil {
		socket, err = control.Listen()
	}
	if err != nil {
		r.log.Info("no control socket: mcpx reload does not reach this process", "err", err)
		return func() {}
	}
	self := func() control.Process {
		return control.Process{PID: os.Getpid(), File: file, Serves: r.serves, Dialled: r.app.Dialled()}
	}
	reload := func(ctx context.Context) control.Outcome {
		done := make(chan control.Outcome, 1)
		ending := control.Outcome{Refused: []string{"this mcpx is about to end"}}
		request := app.ReloadRequest{By: "mcpx reload", Done: func(changed app.Reloaded, err error) { done <- outcomeOf(changed, err) }}
		select {
		case requests <- request:
		case <-ctx.Done():
			return ending
		}
		select {
		case out := <-done:
			return out
		case <-ctx.Done():
			return ending
		}
	}
	socket.Serve(control.Answers{Self: self, Reload: reload, Logins: r.logins})
	return socket.Close
}

func outcomeOf(changed app.Reloaded, err error) control.Outcome {
	if faults, ok := errors.AsType[*config.Faults](err); ok {
		out := control.Outcome{Faults: true}
		for _, fault := range faults.List {
			out.Refused = append(out.Refused, faults.File+": "+fault.String())
		}
		return out
	}
	if err != nil {
		_, missing := errors.AsType[*config.Error](err)
		_, syntax := errors.AsType[*config.SyntaxError](err)
		return control.Outcome{Refused: []string{err.Error()}, Faults: missing || syntax}
	}
	both := func(name string) bool {
		return slices.Contains(changed.Started, name) && slices.Contains(changed.Stopped, name)
	}
	out := control.Outcome{
		Started: slices.DeleteFunc(slices.Clone(changed.Started), both), Stopped: slices.DeleteFunc(slices.Clone(changed.Stopped), both),
		Keys: changed.Keys, Later: changed.Later,
	}
	for _, name := range changed.Started {
		if both(name) {
			out.Restarted = append(out.Restarted, name)
		}
	}
	for _, name := range changed.Changed {
		if !slices.Contains(changed.Started, name) && !slices.Contains(changed.Stopped, name) {
			out.Changed = append(out.Changed, name)
		}
	}
	for _, fault := range changed.Unavailable {
		out.Unavailable = append(out.Unavailable, fault.String())
	}
	return out
}
