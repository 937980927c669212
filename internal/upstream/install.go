package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/transport"
)

const (
	// MaxInstalls is how many commands may install at the same time. Commands that make no progress do not count. If more commands
	// install at once, they slow each other down and may time out.
	MaxInstalls = 3
	// installTime bounds the start of a command that installs its program, if connect_timeout is not set.
	installTime = 10 * time.Minute
	// mcpx ends a command that shows no progress for firstQuiet (at its first start) or laterQuiet (after a successful
	// start).
	firstQuiet = 2 * time.Minute
	laterQuiet = 30 * time.Second
	// When an install has made no progress for restQuiet, the next one in the queue begins too.
	restQuiet = 10 * time.Second
	// lookEvery is the interval at which mcpx checks the progress of a command.
	lookEvery = 2 * time.Second
)

// line is this upstream's place in the queue of commands that install.
type line struct {
	place  *semaphore.Place // nil if the command may install at once
	joined bool
}

// lateError is the reason why mcpx ended the start of a command that took too long, or made no progress for too long.
type lateError string

func (e lateError) Error() string { return string(e) }

// attempt opens a session. took is how long that has taken.
func (u *Upstream) attempt(parent context.Context, spec *Spec) (s *session, took time.Duration, err error) {
	if spec.installs > 0 {
		return u.install(parent, spec)
	}
	if spec.Arrived != nil {
		if err := spec.Arrived(parent); err != nil {
			return nil, 0, err
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, spec.Timeouts.Connect)
	defer cancel()
	s = newSession(spec)
	err = s.open(ctx, u.dialer)
	return s, time.Since(began), err
}

// install opens a session with a command that may install its program first. It waits for its turn to install. It ends the command
// only if the command makes no progress or takes longer than spec.installs, because an interrupted install can leave a damaged
// cache that later starts do not repair. took does not include the wait for the turn.
func (u *Upstream) install(parent context.Context, spec *Spec) (s *session, took time.Duration, err error) {
	if err := u.turn(parent, spec); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	w := &installWatch{gate: spec.Concurrency.Installs, quiet: firstQuiet, placed: true, say: u.say}
	if spec.StartedBefore {
		w.quiet, w.say = laterQuiet, func(string) {}
	}
	stalled := fmt.Sprintf("nothing has moved for %s", w.quiet)
	if slices.Contains(words(spec.Launch.Command, spec.Launch.Args), "npx") {
		stalled += `; an install that was cut off can be the cause, then this helps: rm -rf "$(npm config get cache)/_npx"`
	}
	late := fmt.Sprintf("no answer to initialize within %s", spec.installs)
	if spec.installs != installTime {
		late += ", as connect_timeout says; the command installs what it runs: raise that, or leave it out"
	}
	w.say(program(spec.Launch.Command) + " installs it, for " + spec.installs.String() + " at most")
	parent, cancel := context.WithTimeoutCause(parent, spec.installs, lateError(late))
	defer cancel()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	s = newSession(spec)
	watched := make(chan struct{})
	go func() { // the goroutine ends with ctx
		defer close(watched)
		w.watch(ctx, s.movement, func() { end(lateError(stalled)) })
	}()
	err = s.open(ctx, u.dialer)
	end(nil)
	<-watched
	if w.placed {
		spec.Concurrency.Installs.Leave("")
	}
	return s, time.Since(began), err
}

// turn waits until this command may install.
func (u *Upstream) turn(ctx context.Context, spec *Spec) error {
	place := u.line.place
	if !u.line.joined {
		place = spec.Concurrency.Installs.Join("")
	}
	u.line = line{}
	if place == nil {
		return nil
	}
	if !spec.StartedBefore {
		u.say("waits for other installs")
	}
	return spec.Concurrency.Installs.Await(ctx, place, u.hurry)
}

// giveUpTurn leaves the queue of installs if the upstream ends before its first attempt to connect.
func (u *Upstream) giveUpTurn(ctx context.Context) {
	if u.line.joined && u.turn(ctx, &u.spec) == nil {
		u.spec.Concurrency.Installs.Leave("")
	}
}

// say publishes the progress of a first start: it becomes the reason in the status.
func (u *Upstream) say(progress string) {
	u.update(func(st *Status) {
		if st.Installing {
			st.Reason = progress
		}
	})
}

// installWatch watches whether a command that installs makes progress.
type installWatch struct {
	gate   *semaphore.Semaphore
	quiet  time.Duration // how long the command may make no progress
	placed bool          // the command counts as one of the installs that gate permits at the same time
	say    func(string)
}

// watch calls stalled once the command has made no progress for too long. After restQuiet without progress, the command gives up
// its place in the semaphore gate, so that another command can install. When the command makes progress again, it takes a place at
// once, even if gate is full. watch ends with ctx, or after it has called stalled.
func (w *installWatch) watch(ctx context.Context, movement func() any, stalled func()) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var last any
	moved := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := movement()
		quiet := time.Since(moved)
		switch {
		case now != last:
			last, moved = now, time.Now()
			if !w.placed {
				w.placed = true
				w.gate.Exceed("")
				w.say("its install moves again")
			}
		case quiet >= w.quiet:
			stalled()
			return
		case w.placed && quiet >= restQuiet:
			w.placed = false
			w.gate.Leave("")
			w.say(fmt.Sprintf("its install has not moved for %s, and is ended after %s", restQuiet, w.quiet))
		}
	}
}

// movement returns a value that changes with each sign of progress of the server. It returns nil while the session
// has no link to the server.
func (s *session) movement() any {
	l := s.linked()
	if l == nil {
		return nil
	}
	return l.Evidence().Movement()
}

// linked returns the link; nil as long as there is none.
func (s *session) linked() transport.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// PID returns the id of the server's process; 0 if no session is open, or if this process has not started the server.
func (u *Upstream) PID() int {
	u.mu.Lock()
	s := u.session
	u.mu.Unlock()
	if s == nil {
		return 0
	}
	l := s.linked()
	if l == nil {
		return 0
	}
	return l.Evidence().PID()
}

// installers are the programs that may download the program that they run. If subcommands are listed for an installer, it
// downloads only if one of these subcommands is among its arguments.
var installers = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "dnx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"},
	"uv": {"run", "tool"}, "pipx": {"run"}, "docker": {"run"}, "podman": {"run"}, "nerdctl": {"run"},
	"go": {"run"}, "deno": {"run"}, "cargo": {"run"}, "dotnet": {"run", "tool"}, "nix": {"run"},
}

// shells are programs that run a command line which is in their arguments.
var shells = []string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "powershell", "pwsh", "env"}

// installs reports whether a command may download its program before it runs it.
func installs(command string, args []string) bool {
	all := words(command, args)
	for i, word := range all {
		after, ok := installers[word]
		if ok && (len(after) == 0 || slices.ContainsFunc(all[i+1:], func(word string) bool { return slices.Contains(after, word) })) {
			return true
		}
		if !slices.Contains(shells, all[0]) {
			return false
		}
	}
	return false
}

// words returns the words of a command line. If it runs a script in a shell (sh -c SCRIPT), the script is split into words
// too. Of the path of a program only the file name is kept.
func words(command string, args []string) []string {
	all := []string{program(command)}
	if !slices.Contains(shells, all[0]) {
		return append(all, args...)
	}
	for _, arg := range args {
		for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\r\n;&|()'\"`", r) }) {
			all = append(all, program(word))
		}
	}
	return all
}

// program returns the name of a program without its path and the extension .exe or .cmd, in lower case.
func program(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
}
