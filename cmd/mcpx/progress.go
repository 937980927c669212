package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

const (
	// redrawEvery is the time between two updates of the progress on a terminal.
	redrawEvery = 100 * time.Millisecond
	// If stderr is not a terminal, mcpx prints no progress until quietFor has passed.
	quietFor = 2 * time.Second
)

// tryAll waits until mcpx has tried once to connect to each server, or until ctx ends. It shows the progress on stderr. silent
// has the servers that sessions may share and that are connected but do not answer now, each with the reason.
func tryAll(ctx context.Context, a *app.App, s streams) (silent map[string]string) {
	showing(ctx, a, s, func(ctx context.Context) { silent = a.Registry.WaitAgain(ctx) })
	return silent
}

// reached waits until the first attempt to connect to a server has ended, and for what the function installed waits for. It shows the
// progress on stderr. Afterwards the snapshot of the catalogue is up to date.
func reached(ctx context.Context, a *app.App, s streams, server string) {
	installed(ctx, a, s)
	connecting := func(one attempt) bool { return one.name == server && one.state == catalog.Connecting }
	wait := func(ctx context.Context) { a.Registry.WaitServer(ctx, server) }
	if slices.ContainsFunc(attempts(a), connecting) {
		showing(ctx, a, s, wait)
		return
	}
	wait(ctx)
}

// installed waits until no server is installing its program (as npx does at the first start), or until ctx ends. It shows the
// progress on stderr. A command must not end earlier, because an interrupted install can leave a broken cache.
func installed(ctx context.Context, a *app.App, s streams) {
	if slices.ContainsFunc(attempts(a), func(one attempt) bool { return one.installing }) {
		showing(ctx, a, s, a.Registry.WaitInstalled)
	}
}

func showing(ctx context.Context, a *app.App, s streams, wait func(context.Context)) {
	done := make(chan struct{})
	go func() { // ends when wait returns; the method show waits for that
		defer close(done)
		wait(ctx)
	}()
	(&progress{w: s.err, s: s.errScreen, look: func() []attempt { return attempts(a) }}).show(done)
}

// attempt is mcpx's first attempt to connect to a server, and how far it is.
type attempt struct {
	name   string
	state  catalog.State
	tools  int
	reason string
	// installing means that the server's command is still installing or starting its program; then reason says how far it is.
	installing bool
	took       time.Duration // 0 until the attempt has ended
}

// attempts returns the attempts for all servers, sorted by name.
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

// progress shows the user the attempts to connect to servers. On a terminal it updates a line for each server. Elsewhere it prints
// nothing until quietFor is over, and then a line for each attempt that has ended.
type progress struct {
	w     io.Writer
	s     terminal.Screen
	look  func() []attempt
	began time.Time
	took  map[string]time.Duration
	said  bool // the method plain has printed which servers it waits for, if any
}

// show shows the progress until the channel done is closed.
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

// now returns the attempts that are still running, and those that have ended, with the time that each has taken.
func (p *progress) now() (pending, finished []attempt) {
	for _, one := range p.look() {
		if one.state == catalog.Connecting && p.took[one.name] == 0 {
			pending = append(pending, one)
			continue
		}
		one.took = cmp.Or(p.took[one.name], time.Since(p.began))
		p.took[one.name] = one.took
		finished = append(finished, one)
	}
	return pending, finished
}

// plain prints, once quietFor is over, which servers mcpx waits for. Later it prints which attempts have
// ended.
func (p *progress) plain() {
	before := maps.Clone(p.took)
	open, over := p.now()
	if time.Since(p.began) < quietFor {
		return
	}
	if !p.said {
		p.said = true
		if len(open) > 0 {
			fmt.Fprintln(p.w, "mcpx: waiting for", names(open))
		}
		return
	}
	for _, one := range over {
		if before[one.name] == 0 {
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

// picture returns the lines that a terminal shows: a line for each server, and a last line with numbers. room is the maximum number
// of lines. If there are too many servers, picture leaves out servers, first those whose attempt has ended.
func (p *progress) picture(room int) []string {
	open, over := p.now()
	shown := slices.Concat(open, over)
	shown = shown[:min(len(shown), room-1)]
	slices.SortFunc(shown, func(a, b attempt) int { return cmp.Compare(a.name, b.name) })
	width := 0
	for _, one := range shown {
		width = max(width, len(one.name))
	}
	width = min(width, p.s.Width()/3)
	var lines []string
	for _, one := range shown {
		lines = append(lines, p.line(one, width))
	}
	elapsed := seconds(time.Since(p.began).Seconds())
	return append(lines, p.s.Dim(fmt.Sprintf("  %d tried, %d to go, %s; Ctrl-C ends", len(over), len(open), elapsed)))
}

func (p *progress) line(one attempt, width int) string {
	name := terminal.Pad(terminal.ClipMiddle(one.name, width), width)
	text := sanitize.Line(one.reason, 200)
	if one.took == 0 {
		if one.installing {
			return "  " + name + "  " + p.s.Yellow("starting") + "  " + text
		}
		return "  " + name + "  " + p.s.Yellow("starting")
	}
	if one.state == catalog.Ready {
		text = terminal.Count(one.tools, "tool")
	}
	state := terminal.Pad(stateOn(p.s, one.state), 11)
	return fmt.Sprintf("  %s  %s %8s  %s", name, state, seconds(one.took.Seconds()), text)
}
