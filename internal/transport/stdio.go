package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/wire"
)

// pipe is the Conn of a server that is reached over two byte streams, one for each direction.
type pipe struct {
	*wire.Reader
	*wire.Writer
	end func() // ends the server and waits for it
}

func newPipe(l *streamLink, framing wire.Framing, r io.Reader, w io.Writer) *pipe {
	p := &pipe{wire.NewReader(r, l.dialer.MaxMessage, l.noisy), wire.NewWriter(w, framing), nil}
	if l.dialer.Launch.pinnedFraming() {
		p.Pin(framing)
	}
	return p
}

// Read returns the next message. If the message has Content-Length headers, Write uses such headers from then on.
func (p *pipe) Read() ([]byte, error) {
	data, err := p.Reader.Read()
	if err == nil && p.Framing() == wire.ContentLength {
		p.SetFraming(wire.ContentLength)
	}
	return data, err
}

func (p *pipe) Close() error {
	p.end()
	return nil
}

// dialProcess starts the child process of a stdio server.
func (d *Dialer) dialProcess() (Link, error) {
	process, err := proc.Start(proc.Spec{
		Command: d.Launch.Command, Args: d.Launch.Args, Env: d.Launch.Env, Dir: d.Launch.Cwd, Umask: d.Launch.Umask,
		OnStderr: func(line string) { d.Logger.Debug("stderr", "line", d.Secrets.Line(line, 500)) },
	}, d.Launch.Reaper)
	if err != nil {
		reason := err.Error()
		if errors.Is(err, proc.ErrNotFound) {
			reason += d.Launch.notFoundAdvice()
		}
		return nil, errors.New(d.Secrets.Line(reason, 500))
	}
	d.Logger.Debug("process started", "pid", process.PID())
	l := newStreamLink(d)
	p := newPipe(l, d.framing, process.Stdout(), process.Stdin())
	p.end = func() { _ = process.Close(context.Background(), d.grace()) }
	return l.use(p, &ownServer{
		pid:        process.PID(),
		failure:    func(err error, patience time.Duration) string { return exitReason(process, err, patience) },
		stderr:     process.StderrTail,
		movement:   process.Movement,
		understood: func() { d.heard.Store(1 + int32(p.Framing())) },
	}), nil
}

// programsOf says where to get the programs that start most servers.
var programsOf = map[string]string{
	"npx": "Node.js (https://nodejs.org)", "npm": "Node.js (https://nodejs.org)", "node": "Node.js (https://nodejs.org)",
	"uvx": "uv (https://docs.astral.sh/uv)", "uv": "uv (https://docs.astral.sh/uv)",
	"bunx": "Bun (https://bun.sh)", "bun": "Bun (https://bun.sh)", "deno": "Deno (https://deno.com)",
	"pipx": "pipx (https://pipx.pypa.io)", "docker": "Docker (https://docs.docker.com)",
}

// notFoundAdvice returns the advice for a program that is not in the PATH. It quotes the beginning of the PATH, since desktop
// clients have a shorter one than shells.
func (l *Launch) notFoundAdvice() string {
	advice := "; install it"
	if from := programsOf[l.Command]; from != "" {
		advice = "; it comes with " + from
	}
	path := ""
	for _, pair := range l.Env {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path = value
		}
	}
	const shown = 3
	if folders := filepath.SplitList(path); len(folders) > shown {
		path = fmt.Sprintf("%s and %d more", strings.Join(folders[:shown], string(filepath.ListSeparator)), len(folders)-shown)
	}
	return advice + ", or write the full path of it as command; PATH is " + cmp.Or(path, "not set")
}

// exitReason returns why a child process has ended. It waits at most the time patience for that end. If nothing is known, it
// returns the text of err.
func exitReason(process *proc.Process, err error, patience time.Duration) string {
	// The end of stdout and the end of the process are noticed one shortly after the other, in either order.
	delay.Until(context.Background(), patience, process.Done(), nil)
	what := process.ExitReason()
	switch {
	case what != "":
		return "the process ended: " + what
	case errors.Is(err, io.EOF):
		return "the process closed its stdout"
	}
	return err.Error()
}

func (l *Launch) pinnedFraming() bool { return l.ContentLength || l.NewlineOnly }

// Failed is called after a failed attempt and chooses the framing for the next one: how messages are separated on stdio, by line
// ends or by Content-Length headers. If the server has sent a message, the framing of that message is used. If the server has sent
// no message, the next attempt uses headers if the failed attempt used line ends and got no answer (silent). Otherwise the next
// attempt uses line ends.
func (d *Dialer) Failed(silent bool) {
	heard := d.heard.Load()
	switch {
	case d.Launch.pinnedFraming() || d.Type != Stdio:
	case heard > 0:
		d.framing = wire.Framing(heard - 1)
	case d.framing == wire.Newline && silent:
		d.framing = wire.ContentLength
	default:
		d.framing = wire.Newline
	}
}
