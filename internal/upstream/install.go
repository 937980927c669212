package upstream

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/semaphore"
)

const (
	// MostInstalls is how many installs run at once: more are slower than one after another, and make each other time
	// out.
	MostInstalls = 3
	// installTime bounds the start of a command that installs, if connect_timeout is not set.
	installTime = 10 * time.Minute
	// firstQuiet is how long a command may make no progress at its first start, laterQuiet after a start that has
	// succeeded.
	firstQuiet = 2 * time.Minute
	laterQuiet = 30 * time.Second
	// restQuiet is how long a command makes no progress until its place goes to another install.
	restQuiet = 10 * time.Second
	// lookEvery is the time between two looks at the progress.
	lookEvery = 2 * time.Second
)

// line is a place in the queue of commands that install.
type line struct {
	place  *list.Element // nil: it may install at once
	joined bool
}

// lateError is the reason why a start was ended that took too long.
type lateError string

func (e lateError) Error() string { return string(e) }

// attempt opens a session. took is how long that took, left is how long reading the lists may take.
func (u *Upstream) attempt(parent context.Context, spec *Spec) (s *session, took, left time.Duration, err error) {
	if spec.installs > 0 {
		s, took, err = u.install(parent, spec)
		return s, took, spec.Timeouts.Connect, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, spec.Timeouts.Connect)
	defer cancel()
	s = newSession(spec)
	err = s.open(ctx, u.dialer)
	took = time.Since(began)
	return s, took, spec.Timeouts.Connect - took, err
}

// install opens a session with a command that may install its program first. It waits for a place among the installs, and
// ends the command only if it makes no progress or its whole time has passed: an interrupted install can leave a cache
// behind that later starts do not repair.
func (u *Upstream) install(parent context.Context, spec *Spec) (s *session, took time.Duration, err error) {
	if err := u.turn(parent, spec); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	w := &installWatch{gate: spec.Concurrency.Installs, quiet: firstQuiet, placed: true, say: u.say}
	if spec.Seen {
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
	go func() { // ends with ctx
		defer close(watched)
		w.watch(ctx, s.movement, func() { end(lateError(stalled)) })
	}()
	err = s.open(ctx, u.dialer)
	end(nil)
	<-watched
	if w.placed {
		spec.Concurrency.Installs.Leave()
	}
	return s, time.Since(began), err
}

// turn waits for a place among the commands that install.
func (u *Upstream) turn(ctx context.Context, spec *Spec) error {
	place := u.line.place
	if !u.line.joined {
		place = spec.Concurrency.Installs.Join()
	}
	u.line = line{}
	if place == nil {
		return nil
	}
	if !spec.Seen {
		u.say("waits for other installs")
	}
	return spec.Concurrency.Installs.Await(ctx, place, u.hurry)
}

// giveUpTurn gives back the place in the queue if the first attempt never began.
func (u *Upstream) giveUpTurn(ctx context.Context) {
	if u.line.joined && u.turn(ctx, &u.spec) == nil {
		u.spec.Concurrency.Installs.Leave()
	}
}

// say publishes the progress of a first start as the status's reason.
func (u *Upstream) say(what string) {
	u.update(func(st *Status) {
		if st.Installing {
			st.Reason = what
		}
	})
}

// installWatch watches a command that installs.
type installWatch struct {
	gate   *semaphore.Semaphore
	quiet  time.Duration // how long it may make no progress
	placed bool          // it has a place in gate
	say    func(string)
}

// watch calls stalled once the command has made no progress for too long. A command without progress gives up its place in
// gate after a while, and takes one again, without waiting, when it goes on. watch ends with ctx.
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
				w.gate.Exceed()
				w.say("its install moves again")
			}
		case quiet >= w.quiet:
			stalled()
			return
		case w.placed && quiet >= restQuiet:
			w.placed = false
			w.gate.Leave()
			w.say(fmt.Sprintf("its install has not moved for %s, and is ended after %s", restQuiet, w.quiet))
		}
	}
}

// movement returns a value that changes with each sign of progress on the server's side; nil before there is a link.
func (s *session) movement() any {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Evidence().Movement()
}

// installers are the programs that fetch what they run. The words are subcommands: if there are any, one must follow.
var installers = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "dnx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"},
	"uv": {"run", "tool"}, "pipx": {"run"}, "docker": {"run"}, "podman": {"run"}, "nerdctl": {"run"},
	"go": {"run"}, "deno": {"run"}, "cargo": {"run"}, "dotnet": {"run", "tool"}, "nix": {"run"},
}

// shells are programs whose arguments contain commands.
var shells = []string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "powershell", "pwsh", "env"}

// installs reports whether a command may fetch its program before it runs it.
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

// words splits a command into words, a shell's script too. Programs are named without their path.
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

// program returns the name of a program without its path and Windows extension, in lower case.
func program(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
}
