//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/memory"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/attach"
	"mcpx/internal/desk/config"
	"mcpx/internal/registry"
)

// firstIdle is how long a daemon waits for its first session or command before it ends. After that, the daemon uses daemon_idle,
// because it then has loaded a config.
const firstIdle = time.Minute

// daemon is the state of a daemon process, which all its sessions share.
type daemon struct {
	daemon  *attach.Daemon
	reaper  *proc.Reaper
	pool    *registry.Pool
	log     *slog.Logger
	lines   *app.Lines
	ctx     context.Context // ends with the daemon
	end     context.CancelFunc
	began   time.Time
	history *app.CallHistory // the latest calls of all sessions, which the page shows
	page    daemonPage

	mu       sync.Mutex
	idle     time.Duration
	sessions map[*daemonSession]bool
	kept     map[string]*keptApp // the apps that commands share, by keptApp.key
	ending   sync.WaitGroup      // the apps that were in kept and are being closed
}

// daemonSession is a session over stdio that the daemon serves at the moment.
type daemonSession struct {
	app    *app.App
	folder string
	view   string
	pid    int // the process that asked for the session
	began  time.Time
}

// daemonMain is the main function of a process that runs as the daemon.
func daemonMain() {
	memory.Tune()
	ctx, stop := interruptible()
	ctx, end := context.WithCancel(ctx)
	// SIGHUP is caught and not ignored, because servers would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	lines := &app.Lines{}
	d := &daemon{
		reaper: proc.NewReaper(), log: slog.New(slog.NewTextHandler(os.Stderr, nil)), lines: lines,
		ctx: ctx, end: end, history: &app.CallHistory{}, began: time.Now(),
		pool: registry.NewPool(firstIdle, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		idle: firstIdle, sessions: make(map[*daemonSession]bool), kept: make(map[string]*keptApp),
	}
	d.daemon = attach.New(d.host, firstIdle, d.log)
	err := d.daemon.Serve(ctx)
	d.close()
	end()
	stop()
	os.Exit(report(os.Stderr, err))
}

// close ends what the sessions have left behind. It is called when all sessions have ended.
func (d *daemon) close() {
	d.page.wait()
	d.endKept(func(*keptApp) bool { return true })
	d.ending.Wait() // the apps use the pool until they are closed
	d.pool.Close()
	_ = d.reaper.Close()
}

// daemonOptions is what a command tells the daemon about its command line and its terminal.
type daemonOptions struct {
	Config            string
	LogLevel          level
	Terminal          bool // a user at a terminal can be asked
	Screen, ErrScreen terminal.Copy
	Command           json.RawMessage // the command struct, such as execCommand, as JSON
}

// host runs a command for another process and returns its exit code.
func (d *daemon) host(ctx context.Context, session *attach.Session) int {
	s := streams{
		in: session.In, out: session.Out, err: &keptWriter{session.Err, d.lines}, reloads: session.Reload, getenv: lookIn(session.Environ),
		origin: app.Origin{
			Folder: session.Folder, Environ: session.Environ, Umask: &session.Umask, Reaper: d.reaper,
			Pool: d.pool, History: d.history,
		},
	}
	if session.Command != "serve" {
		s.err, s.out = session.Err, &checkedWriter{Writer: session.Out}
	}
	return conclude(ctx, s, d.run(ctx, s, session))
}

func (d *daemon) run(ctx context.Context, s streams, session *attach.Session) error {
	var o daemonOptions
	if err := json.Unmarshal(session.Options, &o); err != nil {
		return fmt.Errorf("the options of the session: %w", err)
	}
	c := &cli{Config: o.Config, LogLevel: o.LogLevel, Daemon: true}
	s.terminal, s.screen, s.errScreen = o.Terminal, o.Screen.Screen(), o.ErrScreen.Screen()
	s.keep = func(cfg *config.Config, profile app.Profile, names ...string) (*app.App, func(), error) {
		return d.keep(s, cfg, profile, names)
	}
	var command interface {
		runHere(ctx context.Context, c *cli, s streams) error
	}
	switch session.Command {
	case "serve":
		command = &serveCommand{}
		s.began = func(a *app.App) (ended func()) { return d.enter(a, session) }
	case "exec":
		command = &execCommand{}
	case "inspect":
		command = &inspectCommand{}
	case "check":
		command = &checkCommand{}
	case "lock":
		command = &lockCommand{}
	case "status":
		command = &daemonStatus{daemon: d}
	case "logs":
		command = &daemonLogs{daemon: d}
	case "restart":
		command = &daemonRestart{daemon: d}
	case "ui":
		command = &daemonUI{daemon: d}
	case "stop":
		d.end()
		return nil
	default:
		return fmt.Errorf("the daemon has no command %q", session.Command)
	}
	if err := json.Unmarshal(o.Command, command); err != nil {
		return fmt.Errorf("the options of the command: %w", err)
	}
	return command.runHere(ctx, c, s)
}

// enter adds a session to the list of sessions. When the session ends, the caller must call ended, which removes the session from
// the list.
func (d *daemon) enter(a *app.App, session *attach.Session) (ended func()) {
	one := &daemonSession{app: a, folder: session.Folder, view: a.Config.View, pid: session.PID, began: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[one] = true
	d.setIdle(a.Config.DaemonIdle)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sessions, one)
	}
}

// setIdle sets how long the daemon, and the servers that sessions share, stay alive while nothing uses them. The caller holds the
// lock.
func (d *daemon) setIdle(idle time.Duration) {
	d.idle = idle
	d.daemon.SetIdle(idle)
	d.pool.SetIdle(idle)
}

// apps returns the apps of all sessions and commands, and the app of the page.
func (d *daemon) apps() (all []*app.App) {
	if page := d.page.current(); page != nil {
		all = append(all, page.app)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for one := range d.sessions {
		all = append(all, one.app)
	}
	for _, one := range d.kept {
		all = append(all, one.app)
	}
	return all
}

// keptApp is an app that several commands share, one after another or at the same time. Its servers stay up between the commands.
type keptApp struct {
	key, place string // place consists of the folder and the names of servers; key also has the digest of the config
	beside     string // what [app.Beside] returned when the app last read the files beside the config
	app        *app.App
	folder     string
	stderr     *fanOut
	uses       int
	began      time.Time
	timer      *time.Timer // ends the app; runs while no command uses it
}

// keep returns the app that commands share if they have the same folder, config and names of servers, and would start the
// servers alike. It makes the app if there is none. So a server that mcpx inspect has started also serves mcpx exec. The caller
// must call done after use. When no command uses the app any more, it stays for daemon_idle if one of its servers was started.
// Otherwise it ends at once, so that the next command reads the catalogue from disk again. If the config has changed, keep
// makes another app, and ends the old one if no command uses it. If a file beside the config has changed, the app reads it again.
func (d *daemon) keep(s streams, cfg *config.Config, profile app.Profile, names []string) (a *app.App, done func(), err error) {
	place := s.origin.Folder + "\x00" + strings.Join(names, "\x00")
	key := place + "\x00" + s.origin.Digest(cfg, names)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setIdle(cfg.DaemonIdle)
	one, beside := d.kept[key], app.Beside(cfg) // before the app reads the files, so that a later change is noticed
	if one != nil && one.beside != beside {
		if err := one.app.Reread(); err != nil {
			return nil, nil, err
		}
		one.beside = beside
	}
	if one == nil {
		one = &keptApp{
			key: key, place: place, beside: beside, folder: s.origin.Folder, began: time.Now(),
			stderr: &fanOut{to: make(map[*droppingWriter]bool)},
		}
		log := slog.New(slog.NewMultiHandler(
			slog.NewTextHandler(one.stderr, &slog.HandlerOptions{Level: slog.LevelError}),    // a command prints its result, not a log
			slog.NewTextHandler(d.lines, &slog.HandlerOptions{Level: levelOf(cfg.LogLevel)}), // for mcpx logs
		))
		if one.app, err = app.New(app.Options{Config: cfg, Profile: profile, Log: log, Only: names, Origin: s.origin}); err != nil {
			return nil, nil, err
		}
		one.app.Registry.Start()
		one.timer = time.AfterFunc(time.Hour, func() { d.endKept(func(other *keptApp) bool { return other == one && one.uses == 0 }) })
		d.kept[key] = one
	}
	one.timer.Stop()
	one.uses++
	stderr := newDroppingWriter(s.err)
	one.stderr.add(stderr)
	// This ends the unused apps for the same place with another config. The goroutine ends once it has had the lock.
	go d.endKept(func(other *keptApp) bool { return other.place == place && other.key != key && other.uses == 0 })
	return one.app, func() {
		one.stderr.remove(stderr)
		stderr.close()
		d.mu.Lock()
		defer d.mu.Unlock()
		if one.uses--; one.uses > 0 {
			return
		}
		idle := d.idle
		if !one.started() {
			idle = 0
		}
		one.timer.Reset(idle)
	}, nil
}

// started reports whether mcpx has tried to start a server of the app.
func (k *keptApp) started() bool {
	return slices.ContainsFunc(k.app.Config.Servers, func(server config.Server) bool {
		status, ok := k.app.Registry.Status(server.Name)
		return ok && status.State != catalog.Idle
	})
}

// endKept begins to end the kept apps for which match returns true. It calls match with the lock held.
func (d *daemon) endKept(match func(*keptApp) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, one := range d.kept {
		if match(one) {
			one.timer.Stop()
			delete(d.kept, key)
			d.ending.Go(one.app.Close) // ends soon; daemon.close waits for it
		}
	}
}

// sorted returns the sessions, the oldest first.
func (d *daemon) sorted() []*daemonSession {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []*daemonSession
	for one := range d.sessions {
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y *daemonSession) int { return cmp.Or(x.began.Compare(y.began), cmp.Compare(x.pid, y.pid)) })
	return all
}

// lookIn returns a function that looks up a variable in environ. Empty variables whose names begin with MCPX_ count as not set.
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
