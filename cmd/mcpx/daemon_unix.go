//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/memory"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/daemon"
)

// withinVariable is an environment variable with a duration: how long to try to get a daemon, for slow machines.
const withinVariable = "MCPX_DAEMON_WITHIN"

// place returns the place of the daemon for this session; "" if the user, the config or the kind of session wants none. The
// error is why there is no place for one.
func (cmd *serveCommand) place(c *cli, s streams) (daemon.Place, error) {
	if _, file := s.in.(*os.File); !file || s.terminal || cmd.HTTP != "" || cmd.Demo || cmd.Trace != "" || cmd.Pprof != "" {
		return "", nil
	}
	return c.daemonPlace(s)
}

// daemonPlace returns the place of the daemon for the config file; "" if the user or the config wants none.
func (c *cli) daemonPlace(s streams) (daemon.Place, error) {
	if !c.Daemon {
		return "", nil
	}
	path, err := c.findConfig(s)
	if err != nil {
		return "", nil // the command itself reports it
	}
	cfg, err := config.Load(path, s.reading())
	if err != nil || !cfg.Daemon {
		return "", nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	c.Config = path
	return daemon.PlaceOf(path, os.Environ())
}

// sessionOptions is what the daemon needs to know of the command line of a session.
type sessionOptions struct {
	Config   string
	LogLevel level
	View     string
}

// attach serves the session in the daemon. served means that the session was there, and err is then how it has ended. Else
// err is why it was not.
func (cmd *serveCommand) attach(ctx context.Context, c *cli, s streams, place daemon.Place) (served bool, err error) {
	return c.inDaemon(ctx, s, place, "serve", sessionOptions{c.Config, c.LogLevel, cmd.View})
}

// inDaemon runs a command in the daemon, which it starts if there is none. ran means that it was run there, and err is then
// how it has ended. Else err is why it was not, and nothing has happened.
func (c *cli) inDaemon(ctx context.Context, s streams, place daemon.Place, command string, options any) (ran bool, err error) {
	start, err := origin(command, options)
	if err != nil {
		return false, err
	}
	files, copied, err := handable(s)
	if err != nil {
		return false, err
	}
	conn, err := daemon.Dial(place, patienceFor(s), true)
	if err != nil {
		copied(false)
		return false, err
	}
	hangups := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	exit, err := conn.Run(ctx, start, files, hangups)
	copied(true)
	if err == nil && exit != exitOK {
		err = exitError(exit)
	}
	return true, err
}

func patienceFor(s streams) time.Duration {
	if text, ok := s.getenv(withinVariable); ok {
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
	}
	return daemon.Patience
}

// origin describes this process and what it wants.
func origin(command string, options any) (daemon.Start, error) {
	data, err := json.Marshal(options)
	if err != nil {
		return daemon.Start{}, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return daemon.Start{}, fmt.Errorf("the working folder: %w", err)
	}
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return daemon.Start{
		Command: command, Options: data, Folder: folder, Environ: os.Environ(), Umask: mask, PID: os.Getpid(),
	}, nil
}

// handable returns the streams to hand over. In place of a terminal, whose flags belong to the shell and which a session
// must not outlive, it is a pipe; then this process copies. done ends that: with all, after the rest was copied.
func handable(s streams) (files [3]*os.File, done func(all bool), err error) {
	out := s.out
	if checked, ok := out.(*checkedWriter); ok {
		out = checked.Writer
	}
	var copying sync.WaitGroup
	var opened []*os.File
	done = func(all bool) {
		for _, file := range opened {
			file.Close()
		}
		if all {
			copying.Wait()
		}
	}
	for i, stream := range []any{s.in, out, s.err} {
		file, ok := stream.(*os.File)
		if !ok {
			done(false)
			return files, nil, errors.New("the streams of this process are not files")
		}
		files[i] = file
		if !terminal.IsTerminal(file) {
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			done(false)
			return files, nil, err
		}
		if i == 0 {
			files[i], opened = read, append(opened, read)
			go func() { // ends with the input, or with the process
				_, _ = io.Copy(write, file)
				write.Close()
			}()
			continue
		}
		files[i], opened = write, append(opened, write)
		copying.Go(func() { // ends when this process and the daemon have closed the other end
			_, _ = io.Copy(file, read)
			read.Close()
		})
	}
	return files, done, nil
}

// firstIdle is how long a daemon waits for its first session. It knows no config yet.
const firstIdle = time.Minute

// desk is this process in the role of a daemon: what its sessions share.
type desk struct {
	daemon *daemon.Daemon
	reaper *proc.Reaper
	log    *slog.Logger
}

// daemonMain is the main function of the role daemon.
func daemonMain() {
	memory.Tune()
	ctx, stop := interruptible()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // not ignored, which the servers would inherit
	d := &desk{reaper: proc.NewReaper(), log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	d.daemon = daemon.New(d.host, firstIdle, d.log)
	err := d.daemon.Serve(ctx)
	_ = d.reaper.Close()
	stop()
	os.Exit(report(os.Stderr, err))
}

// host runs a command for another process and returns its exit code.
func (d *desk) host(ctx context.Context, session *daemon.Session) int {
	s := streams{
		in: session.In, out: session.Out, err: session.Err, reloads: session.Reload, getenv: lookIn(session.Environ),
		origin: app.Origin{Folder: session.Folder, Environ: session.Environ, Umask: &session.Umask, Reaper: d.reaper},
		began: func(a *app.App) (ended func()) {
			d.daemon.SetIdle(a.Config.DaemonIdle)
			return func() {}
		},
	}
	return conclude(ctx, s, d.run(ctx, s, session))
}

func (d *desk) run(ctx context.Context, s streams, session *daemon.Session) error {
	var o sessionOptions
	if err := json.Unmarshal(session.Options, &o); err != nil {
		return fmt.Errorf("the options of the session: %w", err)
	}
	c := &cli{Config: o.Config, LogLevel: o.LogLevel}
	switch session.Command {
	case "serve":
		return (&serveCommand{View: o.View, Watch: true}).serve(ctx, c, s, nil)
	}
	return fmt.Errorf("the daemon has no command %q", session.Command)
}

// lookIn returns a function that finds a variable in an environment, without the MCPX_ variables that are empty.
func lookIn(environ []string) func(string) (string, bool) {
	all := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && (value != "" || !strings.HasPrefix(name, "MCPX_")) {
			all[name] = value
		}
	}
	return func(name string) (string, bool) {
		value, ok := all[name]
		return value, ok
	}
}
