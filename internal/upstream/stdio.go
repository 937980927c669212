package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/wire"
)

// pipe is the Conn of a server that reads one stream of bytes and writes another.
type pipe struct {
	*wire.Reader
	*wire.Writer
	end func() // ends the server, waits for it
}

func newPipe(l *streamLink, framing wire.Framing, r io.Reader, w io.Writer) *pipe {
	p := &pipe{wire.NewReader(r, l.spec.MaxMessage, l.noisy), wire.NewWriter(w, framing), nil}
	if l.spec.pinnedFraming() {
		p.Pin(framing)
	}
	return p
}

// Read answers a server in the framing that it speaks.
func (p *pipe) Read() ([]byte, error) {
	data, err := p.Reader.Read()
	if err == nil && p.Framing() == wire.ContentLength {
		p.SetFraming(wire.ContentLength)
	}
	return data, err
}

// Close ends the server.
func (p *pipe) Close() error {
	p.end()
	return nil
}

// dialProcess starts the child of a stdio upstream.
func dialProcess(_ context.Context, spec *Spec, framing wire.Framing) (link, error) {
	process, err := proc.Start(proc.Spec{
		Command: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Cwd,
		OnStderr: func(line string) { spec.Logger.Debug("stderr", "line", spec.clean(line, 500)) },
	}, spec.Reaper)
	if err != nil {
		reason := err.Error()
		if errors.Is(err, proc.ErrNotFound) {
			reason += notFoundAdvice(spec)
		}
		return nil, errors.New(spec.clean(reason, 500))
	}
	spec.Logger.Debug("process started", "pid", process.PID())
	l := newStreamLink(spec)
	p := newPipe(l, framing, process.Stdout(), process.Stdin())
	p.end = func() { _ = process.Close(context.Background(), spec.grace()) }
	return l.use(p, &ownServer{
		failure:    func(err error, patience time.Duration) string { return exitReason(process, err, patience) },
		stderr:     process.StderrTail,
		movement:   process.Movement,
		understood: func() { spec.heard.set(p.Framing()) },
	}), nil
}

// programsOf are what brings the programs that servers are mostly started with.
var programsOf = map[string]string{
	"npx": "Node.js (https://nodejs.org)", "npm": "Node.js (https://nodejs.org)", "node": "Node.js (https://nodejs.org)",
	"uvx": "uv (https://docs.astral.sh/uv)", "uv": "uv (https://docs.astral.sh/uv)",
	"bunx": "Bun (https://bun.sh)", "bun": "Bun (https://bun.sh)", "deno": "Deno (https://deno.com)",
	"pipx": "pipx (https://pipx.pypa.io)", "docker": "Docker (https://docs.docker.com)",
}

// notFoundAdvice says what to do about a program that is in no folder of the PATH,
// and which PATH that is: desktop clients have a shorter one than shells.
func notFoundAdvice(spec *Spec) string {
	advice := "; install it"
	if from := programsOf[spec.Command]; from != "" {
		advice = "; it comes with " + from
	}
	path := ""
	for _, pair := range spec.Env {
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

// exitReason says why a child is gone.
func exitReason(process *proc.Process, err error, patience time.Duration) string {
	// The end of stdout and the end of the process come close together, in
	// either order.
	waitFor(context.Background(), patience, process.Done(), nil)
	what := process.ExitReason()
	switch {
	case what != "":
		return "the process ended: " + what
	case errors.Is(err, io.EOF):
		return "the process closed its stdout"
	}
	return err.Error()
}

// dialInProcess starts a server of this process.
func dialInProcess(_ context.Context, spec *Spec, _ wire.Framing) (link, error) {
	ctx, cancel := context.WithCancel(context.Background())
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	ended := make(chan struct{})
	var err error // of Serve, after ended
	// Ends when its input ends or ctx is done; Close waits for it.
	go func() {
		defer close(ended)
		if err = spec.Serve(ctx, serverIn, serverOut); err == nil {
			err = io.EOF
		}
		_ = serverOut.CloseWithError(err)
		_ = serverIn.CloseWithError(err)
	}()
	l := newStreamLink(spec)
	p := newPipe(l, wire.Newline, fromServer, toServer)
	p.end = func() {
		cancel()
		_ = toServer.Close()
		_ = fromServer.Close()
		<-ended
	}
	failure := func(seen error, patience time.Duration) string {
		waitFor(context.Background(), patience, ended, nil)
		select {
		case <-ended:
			seen = err
		default:
		}
		return "the server ended: " + seen.Error()
	}
	return l.use(p, &ownServer{failure: failure}), nil
}
