package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"

	"gopkg.in/natefinch/lumberjack.v2"

	"mcpx/internal/app"
	"mcpx/internal/base/memory"
)

type serveCommand struct {
	HTTP string `name:"http" help:"Serve streamable HTTP at this address instead, for example 127.0.0.1:8080." placeholder:"ADDR"`
	Demo bool   `help:"Serve the demo's sample servers instead of a config."`

	Insecure bool `help:"Listen on an address that other machines can reach, although the config has no auth: something else controls access."`

	View  string `help:"What a client gets: two_tools, tools (all tools, each with a name of its own), servers/NAME or groups/NAME; overrides the config." placeholder:"VIEW"`
	Watch bool   `help:"Load the config file again when it changes, as after SIGHUP."`
	Trace string `help:"Write every message, from and to clients and servers, to this file, without secrets; for people who write servers." placeholder:"FILE" type:"path"`
	Pprof string `help:"Serve profiles of mcpx itself (/debug/pprof/) at this address, on loopback only." placeholder:"ADDR"`
}

func (cmd *serveCommand) Help() string {
	return "Without a command mcpx serves: this is what MCP clients start.\n\n" +
		examples("mcpx --config ~/mcp.json", "mcpx serve --http 127.0.0.1:8080", "mcpx serve --demo --http 8080",
			"mcpx serve --view groups/coding", "mcpx serve --watch")
}

// Run serves until the input ends or mcpx receives a signal: as a session of the daemon if possible, else by itself.
func (cmd *serveCommand) Run(ctx context.Context, c *cli, s streams) error {
	place, why := cmd.place(c, s)
	if place != "" {
		var served bool
		if served, why = cmd.attach(ctx, c, s, place); served {
			return why
		}
	}
	return cmd.serve(ctx, c, s, why)
}

// runHere serves a session inside the daemon.
func (cmd *serveCommand) runHere(ctx context.Context, c *cli, s streams) error {
	return cmd.serve(ctx, c, s, nil)
}

// serve serves in this process. reason is why the daemon did not serve the session; nil if the session was not meant for the
// daemon, or if this process is the daemon.
func (cmd *serveCommand) serve(ctx context.Context, c *cli, s streams, reason error) error {
	defer surviveBrokenPipes()()
	stderr := newDroppingWriter(s.err)
	defer stderr.close()
	s.err = stderr
	a, log, closeLogs, err := cmd.assemble(ctx, c, s)
	defer closeLogs()
	if err != nil {
		return err
	}
	if s.began != nil {
		defer s.began(a)()
	}
	if reason != nil {
		log.Info("serving without the daemon", "reason", reason)
	}
	end, err := a.Open()
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var listener net.Listener
	if cmd.HTTP != "" { // must come before reloading, which needs the address
		if listener, err = a.Listen(ctx, cmd.HTTP, cmd.Insecure); err != nil {
			return c.hinted(err, "token", "new", "NAME")
		}
		defer listener.Close() // has an effect only after an error before serving
	}
	if !cmd.Demo {
		defer (&reloading{cmd, a, log, s, servesAt(a, listener)}).start(ctx, cancel)()
	}
	stop, err := cmd.profile(ctx, log)
	if err != nil {
		return err
	}
	defer stop()
	if listener != nil {
		return cmd.serveHTTP(ctx, a, log, s, listener)
	}
	if s.terminal {
		fmt.Fprintln(s.err, "mcpx: waiting for an MCP client on stdin; this is for a client's configuration, not for typing.")
		fmt.Fprintf(s.err, "mcpx: try: mcpx demo, %s, %s, or %s. Ctrl-C ends.\n",
			c.hint("check"), c.hint("inspect"), c.hint("serve", "--http", "127.0.0.1:8080"))
	}
	if checked, ok := s.out.(*checkedWriter); ok {
		s.out = checked.Writer
	}
	in, restore := polled(s.in, os.Stdout, os.Stderr)
	defer restore()
	return ended(log, "stdio", a.ServeStdio(ctx, in, s.out))
}

// assemble reads the config and makes the app. The caller must call closeLogs, which is never nil, also after an error.
func (cmd *serveCommand) assemble(ctx context.Context, c *cli, s streams) (a *app.App, log *slog.Logger, closeLogs func(), err error) {
	closeLogs = func() {}
	for _, flag := range [][2]string{{"--trace", cmd.Trace}, {"--view", cmd.View}} {
		if cmd.Demo && flag[1] != "" {
			return nil, nil, closeLogs, &usageError{hintError{
				flag[0] + " is for the servers of a config, not for --demo", "mcpx --config FILE serve " + flag[0] + " " + flag[1],
			}}
		}
	}
	if cmd.Demo {
		log = c.logger(s, "warn", "text")
		a, err = app.New(app.Options{Profile: app.Demo, Log: log})
		return a, log, closeLogs, err
	}
	cfg, err := c.loadConfig(ctx, s)
	if err != nil {
		return nil, nil, closeLogs, err
	}
	if cmd.View != "" {
		if text := cfg.CheckView(cmd.View); text != "" {
			return nil, nil, closeLogs, &usageError{hintError{fmt.Sprintf("--view %s: %s", cmd.View, text), ""}}
		}
		cfg.View = cmd.View
	}
	trace, closeTrace, err := traceTo(cmd.Trace)
	if err != nil {
		return nil, nil, closeLogs, err
	}
	stderr, closeFile := logTo(cfg.LogFile, s.err)
	s.err = stderr
	profile, lines := app.Hosted, &app.Lines{}
	if cmd.HTTP == "" {
		profile, lines = app.Stdio, nil
	} else {
		s.err = &keptWriter{s.err, lines}
	}
	log = c.logger(s, cfg.LogLevel, cfg.LogFormat)
	if trace != nil {
		log.Warn("every message is written to a file, with what agents send and get", "file", cmd.Trace)
	}
	memory.Limit(app.OwnMemory(cfg))
	a, err = app.New(app.Options{Config: cfg, Profile: profile, Log: log, Lines: lines, Trace: trace, Origin: s.origin})
	return a, log, func() { closeTrace(); closeFile() }, err
}

// When the file of --trace has traceMegabytes, mcpx renames it and begins a new file. mcpx keeps the last oldTraces renamed files.
// In the same way, logMegabytes and oldLogs apply to the config key log_file.
const (
	traceMegabytes, oldTraces = 50, 1
	logMegabytes, oldLogs     = 10, 3
)

// traceTo opens the file for --trace. Without the flag, out is nil.
func traceTo(file string) (out io.Writer, close func(), err error) {
	if file == "" {
		return nil, func() {}, nil
	}
	opened, err := begin(&lumberjack.Logger{Filename: file, MaxSize: traceMegabytes, MaxBackups: oldTraces}) // file mode 0600
	if err != nil {
		return nil, nil, fmt.Errorf("--trace: %w; name a file in a folder that mcpx may write", err)
	}
	return opened, func() { _ = opened.Close() }, nil
}

// begin creates the file and its folder, and returns what to write to. What is no file, such as /dev/stderr, is not left to lumberjack,
// which renames a file that is full or that it cannot open. A pipe that nobody reads is refused, because to open it would block.
func begin(rotated *lumberjack.Logger) (io.WriteCloser, error) {
	name := rotated.Filename
	switch info, err := os.Stat(name); {
	case err != nil || info.Mode().IsRegular(): // if there is more to err than that there is no file yet, Write returns it
		_, err = rotated.Write(nil)
		return rotated, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case info.Mode()&os.ModeNamedPipe != 0:
		pipe, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, fmt.Errorf("%s is a pipe that nobody reads (%w)", name, err)
		}
		defer pipe.Close()
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
}

// logTo returns a writer for the log. It writes to stderr and, because many clients hide stderr, also to a file. If file is empty,
// it writes to stderr only. If the file cannot be written, logTo prints a warning, and the writer writes to stderr only.
func logTo(file string, stderr io.Writer) (log io.Writer, close func()) {
	if file == "" {
		return stderr, func() {}
	}
	opened, err := begin(logFiles.open(file))
	if err != nil {
		fmt.Fprintf(stderr, "mcpx: warning: log_file: %v; set log_file to a file in a folder that mcpx may write\n", err)
		return stderr, func() {}
	}
	queued := newDroppingWriter(opened) // mcpx must not wait for a disk that hangs
	return io.MultiWriter(stderr, queued), func() {
		queued.close()
		_ = opened.Close()
	}
}

// openLogs has the log files of a process, by their paths.
type openLogs struct {
	mu     sync.Mutex
	byPath map[string]*lumberjack.Logger
}

// logFiles has one logger for each log file. All sessions of a daemon use the same logger for a file, because a second logger would
// not notice that the first one has renamed the file. A closed logger opens its file again at the next write. It stays in the map,
// because it has a goroutine that ends only with the process.
var logFiles openLogs

// open returns the logger of a file. The logger opens the file again at its next write, because somebody may have moved the file
// away.
func (o *openLogs) open(path string) *lumberjack.Logger {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byPath == nil {
		o.byPath = make(map[string]*lumberjack.Logger)
	}
	one := o.byPath[path]
	if one == nil {
		one = &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: oldLogs}
		o.byPath[path] = one
	}
	_ = one.Close()
	return one
}

// servesAt returns the URL at which clients reach mcpx, or "stdio" if listener is nil.
func servesAt(a *app.App, listener net.Listener) string {
	switch {
	case listener == nil:
		return "stdio"
	case a.Config.TLS != nil:
		return "https://" + listener.Addr().String() + a.Config.HTTPPath
	}
	return "http://" + listener.Addr().String() + a.Config.HTTPPath
}

func (cmd *serveCommand) serveHTTP(ctx context.Context, a *app.App, log *slog.Logger, s streams, listener net.Listener) error {
	if url := servesAt(a, listener); cmd.Demo {
		fmt.Fprintln(s.err, "mcpx: serving the demo at", url) // the demo logs only warnings, so log.Info would not show the URL
	} else {
		log.Info("serving", "url", url)
	}
	return ended(log, "HTTP", a.ServeHTTP(ctx, listener))
}

// profile serves Go's runtime profiles (pprof) of mcpx at the address of --pprof until stop is called. Without the flag, it does
// nothing.
func (cmd *serveCommand) profile(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	if cmd.Pprof == "" {
		return func() {}, nil
	}
	if stop, err = app.ServeProfiles(ctx, cmd.Pprof, log); err != nil {
		return nil, fmt.Errorf("--pprof: %w", err)
	}
	return stop, nil
}

// ended logs err, the error that ended serving, and returns errFailed for the exit code. over is how the clients were served:
// "stdio" or "HTTP". ended does not return err itself, because printing it would block if the client does not read stderr.
func ended(log *slog.Logger, over string, err error) error {
	if err == nil {
		return nil
	}
	log.Error("serving over "+over+" ended", "err", err)
	return errFailed
}
