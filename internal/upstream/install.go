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
	// MostInstalls is how many commands that install are to be at work at once: more
	// together are slower than one after another, and time each other out.
	MostInstalls = 3
	// installTime is how long such a command may take, where no setting says it.
	installTime = 10 * time.Minute
	// firstQuiet is how long nothing may move at its first start, laterQuiet at those
	// after one that has succeeded.
	firstQuiet = 2 * time.Minute
	laterQuiet = 30 * time.Second
	// restQuiet is how long nothing moves until a command counts as not at work.
	restQuiet = 10 * time.Second
	// lookEvery is the time between two looks at what moves.
	lookEvery = 2 * time.Second
)

// installLimits bound a start of a command that installs. To end it in the middle can
// leave a cache behind that no later start mends.
type installLimits struct{ whole, firstQuiet, laterQuiet time.Duration }

func newInstallLimits(connectTimeout time.Duration) *installLimits {
	if connectTimeout <= 0 {
		connectTimeout = installTime
	}
	return &installLimits{connectTimeout, firstQuiet, laterQuiet}
}

// line is a place in the line of the commands that install.
type line struct {
	place  *list.Element // nil: it may install at once
	joined bool
}

// lateError is why a start was ended that took too long.
type lateError struct {
	after time.Duration
	quiet bool // nothing has moved for that time
	set   bool // connect_timeout says it
	npx   bool
}

func (e *lateError) Error() string {
	switch {
	case e.quiet && e.npx:
		return fmt.Sprintf(`nothing has moved for %s; an install that was cut off can be the cause, then this helps: rm -rf "$(npm config get cache)/_npx"`, e.after)
	case e.quiet:
		return fmt.Sprintf("nothing has moved for %s", e.after)
	case e.set:
		return fmt.Sprintf("no answer to initialize within %s, as connect_timeout says; the command installs what it runs: raise that, or leave it out", e.after)
	}
	return fmt.Sprintf("no answer to initialize within %s", e.after)
}

// attempt opens a session. took is how long that took; left is what the listing may
// take.
func (u *Upstream) attempt(parent context.Context, spec *Spec) (s *session, took, left time.Duration, err error) {
	if spec.installs != nil {
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

// install opens a session with a command that may install at first. It waits for its
// turn, and ends the command only when nothing moves or all of its time has passed.
func (u *Upstream) install(parent context.Context, spec *Spec) (s *session, took time.Duration, err error) {
	if err := u.turn(parent, spec); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	w := &installWatch{gate: spec.Concurrency.Installs, quiet: spec.installs.firstQuiet, counts: true, say: func(string) {}}
	if spec.Seen {
		w.quiet = spec.installs.laterQuiet
	} else {
		w.say = u.say
	}
	npx := slices.Contains(words(spec.Launch.Command, spec.Launch.Args), "npx")
	w.say(program(spec.Launch.Command) + " installs it, for " + spec.installs.whole.String() + " at most")
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	whole := time.AfterFunc(spec.installs.whole, func() {
		end(&lateError{after: spec.installs.whole, set: spec.installs.whole != installTime})
	})
	defer whole.Stop()
	s = newSession(spec)
	watched := make(chan struct{})
	go func() { // ends with ctx
		defer close(watched)
		w.watch(ctx, s.movement, func(quiet time.Duration) { end(&lateError{after: quiet, quiet: true, npx: npx}) })
	}()
	err = s.open(ctx, u.dialer)
	end(nil)
	<-watched
	if w.counts {
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
		u.say("waits for the installs of others")
	}
	return spec.Concurrency.Installs.Await(ctx, place, u.hurry)
}

// giveUpTurn leaves the line, or what it led to, if the first attempt never began.
func (u *Upstream) giveUpTurn(ctx context.Context) {
	if u.line.joined && u.turn(ctx, &u.spec) == nil {
		u.spec.Concurrency.Installs.Leave()
	}
}

// say publishes what a first start waits for.
func (u *Upstream) say(what string) {
	u.update(func(st *Status) {
		if st.Installing {
			st.Reason = what
		}
	})
}

// installWatch watches over a command that installs.
type installWatch struct {
	gate   *semaphore.Semaphore
	quiet  time.Duration // how long nothing may move
	counts bool          // it has a place in the gate
	say    func(string)
}

// watch calls stalled once nothing has moved for too long. A command in which nothing
// moves for a while gives its place away; it is in again, without a wait, when
// something does. watch ends with ctx.
func (w *installWatch) watch(ctx context.Context, movement func() any, stalled func(time.Duration)) {
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
			if !w.counts {
				w.counts = true
				w.gate.Exceed()
				w.say("its install moves again")
			}
		case quiet >= w.quiet:
			stalled(w.quiet)
			return
		case w.counts && quiet >= restQuiet:
			w.counts = false
			w.gate.Leave()
			w.say(fmt.Sprintf("its install has not moved for %s, and is ended after %s", restQuiet, w.quiet))
		}
	}
}

// movement is what moved on the side of the server so far; nil before there is a link.
func (s *session) movement() any {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Evidence().Movement()
}

// installers are the programs that fetch what they run, with the words of which one has
// to follow for that; none where they always do.
var installers = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "dnx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"},
	"uv": {"run", "tool"}, "pipx": {"run"}, "docker": {"run"}, "podman": {"run"}, "nerdctl": {"run"},
	"go": {"run"}, "deno": {"run"}, "cargo": {"run"}, "dotnet": {"run", "tool"}, "nix": {"run"},
}

// shells are the programs whose arguments are commands.
var shells = []string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "powershell", "pwsh", "env"}

// installs reports whether a command may fetch what it runs before it runs it.
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

// words are the words of a command, those of a shell's script among them; of a path
// the name of the program.
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

// program is the name of a program whatever the system.
func program(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
}
