package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

const (
	// redrawEvery is the time between two pictures of the attempts.
	redrawEvery = 100 * time.Millisecond
	// quietFor is how long progress prints nothing if stderr is no terminal.
	quietFor = 2 * time.Second
)

// attempt is the state of the first attempt of one server.
type attempt struct {
	name   string
	state  catalog.State
	tools  int
	reason string
	// installing means that reason is the progress of an install.
	installing bool
	took       time.Duration // 0 until it is over
}

// attempts are the attempts of all servers, in the order of their names.
func attempts(a *app.App) []attempt {
	var all []attempt
	snap := a.Registry.Snapshot()
	for i := range snap.Servers {
		if status, ok := a.Registry.Status(snap.Servers[i].Name); ok {
			all = append(all, attempt{
				name: snap.Servers[i].Name, state: status.State, tools: len(status.Tools),
				reason: status.Reason, installing: status.Installing,
			})
		}
	}
	return all
}

// progress shows the attempts to people. On a terminal it redraws a line for each server.
// Otherwise it prints, after quietFor, a line for each attempt that is over.
type progress struct {
	w     io.Writer
	s     terminal.Screen
	look  func() []attempt
	began time.Time
	took  map[string]time.Duration
	told  bool
}

// show shows the attempts until done is closed.
func (p *progress) show(done <-chan struct{}) {
	p.began, p.took = time.Now(), make(map[string]time.Duration)
	every, draw := quietFor/8, p.plain
	if live := terminal.NewLive(p.w, p.s); p.s.Live() {
		every, draw = redrawEvery, func() { live.Draw(p.picture(live.Room())) }
		defer live.Clear()
		draw()
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			draw()
		}
	}
}

// now are the attempts, with their times.
func (p *progress) now() (open, over []attempt) {
	elapsed := time.Since(p.began)
	for _, one := range p.look() {
		if one.state == catalog.Connecting && p.took[one.name] == 0 {
			open = append(open, one)
			continue
		}
		if p.took[one.name] == 0 {
			p.took[one.name] = elapsed
		}
		one.took = p.took[one.name]
		over = append(over, one)
	}
	return open, over
}

// plain prints, after quietFor, the servers that mcpx waits for, and then each that is
// over.
func (p *progress) plain() {
	before := make(map[string]bool)
	for name := range p.took {
		before[name] = true
	}
	open, over := p.now()
	if time.Since(p.began) < quietFor {
		return
	}
	if !p.told {
		p.told = true
		if len(open) > 0 {
			fmt.Fprintln(p.w, "mcpx: waiting for", names(open))
		}
		return
	}
	for _, one := range over {
		if !before[one.name] {
			fmt.Fprintf(p.w, "mcpx: %s is %s after %s\n", one.name, one.state, seconds(one.took.Seconds()))
		}
	}
}

func names(all []attempt) string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = one.name
		if one.installing {
			list[i] += " (" + one.reason + ")"
		}
	}
	return strings.Join(list, ", ")
}

// picture has a line for each server, in at most room lines. If there are more servers,
// it leaves out those that are over.
func (p *progress) picture(room int) []string {
	open, over := p.now()
	room-- // for the last line
	all := p.look()
	shown := make(map[string]attempt)
	for _, one := range append(open, over...) {
		if len(shown) < room {
			shown[one.name] = one
		}
	}
	width := 0
	for name := range shown {
		width = max(width, len(name))
	}
	width = min(width, p.s.Width()/3)
	lines := []string{}
	for _, one := range all {
		if one, ok := shown[one.name]; ok {
			lines = append(lines, p.line(one, width))
		}
	}
	elapsed := seconds(time.Since(p.began).Seconds())
	return append(lines, p.s.Dim(fmt.Sprintf("  %d tried, %d to go, %s; Ctrl-C ends", len(over), len(open), elapsed)))
}

func (p *progress) line(one attempt, width int) string {
	name := terminal.Pad(terminal.ClipMiddle(one.name, width), width)
	switch one.took {
	case 0:
		text := p.s.Yellow("starting")
		if one.installing {
			text += "  " + sanitize.Line(one.reason, 200)
		}
		return "  " + name + "  " + text
	default:
		text := terminal.Count(one.tools, "tool")
		if one.state != catalog.Ready {
			text = sanitize.Line(one.reason, 200)
		}
		state := stateOn(p.s, one.state) + strings.Repeat(" ", max(0, 11-len(one.state)))
		return fmt.Sprintf("  %s  %s %8s  %s", name, state, seconds(one.took.Seconds()), text)
	}
}
