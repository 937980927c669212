//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/attach"
	"mcpx/internal/desk/config"
)

// withinVariable is an environment variable for slow machines. Its value, such as 30s, is how long mcpx tries to reach or start a
// daemon.
const withinVariable = "MCPX_DAEMON_WITHIN"

// place returns the address of the daemon for this session. It returns "" if the session should run without a daemon. That is so if
// the session does not serve an MCP client over stdio, if it has a flag that the daemon cannot serve, such as --trace, or if
// daemonPlace returns "". An error means that there is no usable address.
func (cmd *serveCommand) place(c *cli, s streams) (attach.Place, error) {
	if _, file := s.in.(*os.File); !file || s.terminal || cmd.HTTP != "" || cmd.Demo || cmd.Trace != "" || cmd.Pprof != "" {
		return "", nil
	}
	return c.daemonPlace(s)
}

// daemonPlace returns the address of the daemon for the config file. It returns "" if the user or the config has turned the
// daemon off, or if the config cannot be loaded.
func (c *cli) daemonPlace(s streams) (attach.Place, error) {
	if !c.Daemon {
		return "", nil
	}
	path, err := c.findConfig(s)
	if err != nil {
		return "", nil // the command reports the missing config later
	}
	cfg, err := config.Load(path, s.reading())
	if err != nil || !cfg.Daemon {
		return "", nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	folder, _ := os.Getwd() // an error is reported later
	if !utf8.ValidString(folder) || slices.ContainsFunc(os.Environ(), func(v string) bool { return !utf8.ValidString(v) }) {
		return "", errors.New("the working folder or an environment variable is not UTF-8") // the messages to the daemon are JSON
	}
	c.Config = path
	return attach.PlaceOf(path, os.Environ())
}

// attach serves the session in the daemon. If served is true, err is the error that ended the session. If served is false, err is
// the reason why the daemon could not serve the session.
func (cmd *serveCommand) attach(ctx context.Context, c *cli, s streams, place attach.Place) (served bool, err error) {
	return c.inDaemon(ctx, s, request{place: place, command: "serve", options: &serveCommand{View: cmd.View, Watch: true}, start: true})
}

// warm runs a command in the daemon, where servers run already and stay up after the command. If ran is true, err is how the
// command has ended. If ran is false, the caller must run the command in this process.
func (c *cli) warm(ctx context.Context, s streams, w daemonCommand) (ran bool, err error) {
	place, err := c.daemonPlace(s)
	if place == "" || err != nil {
		return false, nil
	}
	// A command that reads no input gets an empty one. So stdin is left to other programs, such as the shell that reads its script
	// there.
	if !w.reads {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return false, err
		}
		defer null.Close()
		s.in = null
	}
	ci, _ := s.getenv("CI")
	return c.inDaemon(ctx, s, request{place, w.command, w.options, w.start && (ci == "" || ci == "false")})
}

// ask runs a command in all daemons of the config: in the daemon for this process's environment variables, in daemons that were
// started with other environment variables, and in daemons of other builds of mcpx. The error is attach.ErrNone if there are none.
func (c *cli) ask(ctx context.Context, s streams, command string, options any) error {
	path, missing := c.findConfig(s)
	if missing != nil {
		path = c.Config // the file is gone, but its daemon may still run
	}
	if path == "" {
		return missing
	}
	var err error
	if c.Config, err = filepath.Abs(path); err != nil {
		return err
	}
	place, err := attach.PlaceOf(c.Config, os.Environ())
	if err != nil {
		return err
	}
	var outcomes []error
	for _, one := range append([]attach.Place{place}, place.Others()...) {
		if _, err := c.inDaemon(ctx, s, request{one, command, options, false}); !errors.Is(err, attach.ErrNone) {
			outcomes = append(outcomes, err)
		}
	}
	switch {
	case len(outcomes) == 0 && missing != nil:
		return missing
	case len(outcomes) == 0:
		return attach.ErrNone
	// the server may run in only one of these daemons: if that one has done the command, the other daemons' errors do not count
	case (command == "restart" || command == "logs") && slices.Contains(outcomes, nil):
		outcomes = slices.DeleteFunc(outcomes, func(err error) bool { _, said := errors.AsType[exitError](err); return said })
	}
	return errors.Join(outcomes...)
}

// gone waits until no daemon runs for the config. After 10 s it gives up and returns an error.
func (c *cli) gone(ctx context.Context) error {
	place, err := attach.PlaceOf(c.Config, os.Environ())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		if place.Free() && len(place.Others()) == 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("the daemon still runs")
		}
	}
}

// request asks the daemon at an address to run a command with some options.
type request struct {
	place   attach.Place
	command string
	options any
	start   bool // start a daemon if there is none
}

// inDaemon runs a command in the daemon. If ran is true, err is how the command has ended. If ran is false, the command did not
// run, and err says why.
func (c *cli) inDaemon(ctx context.Context, s streams, r request) (ran bool, err error) {
	start, err := c.describe(s, r)
	if err != nil {
		return false, err
	}
	conn, err := attach.Dial(r.place, patienceFor(s), r.start)
	if err != nil {
		return false, err
	}
	// This comes after all else that can fail, because handedFiles begins to read the terminal.
	files, done, err := handedFiles(s)
	if err != nil {
		conn.Close()
		return false, err
	}
	hangups := make(chan os.Signal, 1)
	// Only serve reads the config again at this signal. The other commands end.
	if r.command == "serve" && !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	exit, err := conn.Run(ctx, start, files, hangups)
	done(err != nil)
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
	return attach.Patience
}

// describe returns the message that tells the daemon what to run, and the folder, environment and umask of this process.
func (c *cli) describe(s streams, r request) (attach.Start, error) {
	command, err := json.Marshal(r.options)
	if err != nil {
		return attach.Start{}, err
	}
	options, err := json.Marshal(daemonOptions{c.Config, c.LogLevel, s.terminal, s.screen.Copy(), s.errScreen.Copy(), command})
	if err != nil {
		return attach.Start{}, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return attach.Start{}, fmt.Errorf("the working folder: %w", err)
	}
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return attach.Start{
		Command: r.command, Options: options, Folder: folder, Environ: os.Environ(), Umask: mask, PID: os.Getpid(),
	}, nil
}

// lastWords is how long a command goes on printing the output of the daemon after the connection to the daemon was lost.
const lastWords = time.Second

// handedFiles returns the files for stdin, stdout and stderr that this process gives to the daemon. It replaces a terminal by a
// pipe, and this process then copies between the pipe and the terminal. There are two reasons: the daemon must not change the
// terminal's flags, which belong to the shell, and a session must end with its terminal. done waits until all output was copied. If
// its parameter lost is true, the connection to the daemon was lost, and done waits for at most lastWords.
func handedFiles(s streams) (files [3]*os.File, done func(lost bool), err error) {
	out := s.out
	if checked, ok := out.(*checkedWriter); ok {
		out = checked.Writer
	}
	var copying sync.WaitGroup
	var opened, outputs []*os.File
	done = func(lost bool) {
		for _, file := range opened {
			file.Close()
		}
		for _, output := range outputs {
			if lost {
				_ = output.SetReadDeadline(time.Now().Add(lastWords))
			}
		}
		copying.Wait()
	}
	of := [3]any{s.in, out, s.err}
	for _, i := range []int{1, 2, 0} { // the input comes last, because what was read from it cannot be given back after an error
		file, ok := of[i].(*os.File)
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
		files[i], opened, outputs = write, append(opened, write), append(outputs, read)
		copying.Go(func() { // ends when nobody can write to the pipe any more, or after lastWords
			_, _ = io.Copy(file, read)
			read.Close()
		})
	}
	return files, done, nil
}
