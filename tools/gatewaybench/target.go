package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/wire"
)

// target is a running peer with its servers.
type target struct {
	peer      *peer
	transport string
	dir       string
	owner     *bench
	log       *logFile
	running   []*proc.Process // processes of the gateway
	servers   []*proc.Process // servers that run apart from the gateway, for peer.remote
	urls      map[string]string
	mu        sync.Mutex
	sessions  map[string]session // guarded by mu; the keys come from the methods key and sessionsFor
	greetings map[string][]byte  // guarded by mu; the results of initialize, by the same keys
}

// logFile is a log for the output of a gateway and for notes of the bench.
type logFile struct {
	mu   sync.Mutex
	file *os.File
	left int // bytes that it still accepts
}

func (l *logFile) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf(format, args...) + "\n"
	if l.file == nil || l.left < len(line) {
		return
	}
	l.left -= len(line)
	_, _ = l.file.WriteString(line)
}

func (l *logFile) Write(data []byte) (int, error) {
	l.note("%s", strings.TrimRight(string(data), "\n"))
	return len(data), nil
}

// start starts a peer with servers. dir is the home folder of an earlier start; if it is empty, the peer gets a new one.
func (b *bench) start(p *peer, transport, dir string, specs []serverSpec, log *logFile) (t *target, err error) {
	t = &target{peer: p, transport: transport, dir: dir, owner: b, log: log, urls: map[string]string{},
		sessions: map[string]session{}, greetings: map[string][]byte{}}
	defer func() {
		if err != nil {
			t.stop()
		}
	}()
	if t.dir == "" {
		if t.dir, err = os.MkdirTemp(b.temp, "home-"); err != nil {
			return t, err
		}
	}
	var all []placed
	for _, spec := range specs {
		s, err := b.place(spec, t)
		if err != nil {
			return t, err
		}
		all = append(all, s)
	}
	if !p.single {
		return t, t.launch(all)
	}
	for _, one := range all {
		if err := t.launch([]placed{one}); err != nil {
			return t, err
		}
	}
	return t, nil
}

// place writes the spec of a server to a file. If the peer reaches servers only over HTTP, place also starts the server.
func (b *bench) place(spec serverSpec, t *target) (placed, error) {
	s := placed{Name: spec.Name, Command: b.self}
	file := filepath.Join(t.dir, "server-"+spec.Name+".json")
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return s, err
	}
	s.Args = []string{"serve", file}
	if !t.peer.remote {
		return s, nil
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort())
	s.URL = "http://" + address + "/mcp"
	process, err := t.run(append([]string{s.Command}, append(s.Args, address)...), nil)
	if err == nil {
		t.servers = append(t.servers, process)
		err = answers(address)
	}
	return s, err
}

// answers waits until a program listens at address, at most ten seconds.
func answers(address string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return err
		}
	}
}

// freePort returns a port that is free now. The bench chooses the port of a gateway, because gateways that are given port 0 do not
// say which port they got. The port is below 32768. Systems choose only higher ports for connections and for programs that listen
// on port 0, so they do not take the port before the gateway listens. freePort returns 0 if it finds no port.
func freePort() int {
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	return 0
}

// launch starts one process of the gateway, for these servers.
func (t *target) launch(servers []placed) error {
	d := deployment{bin: t.owner.installed[t.peer.name], dir: t.dir, port: freePort(), transport: t.transport, servers: servers}
	l := t.peer.launch(d)
	for name, text := range l.files {
		if err := os.WriteFile(filepath.Join(t.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	process, err := t.run(l.argv, l.env)
	if err != nil {
		return err
	}
	t.running = append(t.running, process)
	key := ""
	if t.peer.single {
		key = servers[0].Name
	}
	if t.transport == overStdio {
		t.sessions[key] = newPipeSession(process.Stdin(), process.Stdout())
		return nil
	}
	go func() { _, _ = io.Copy(t.log, process.Stdout()) }() // ends with the process
	for _, s := range servers {
		t.urls[s.Name] = strings.ReplaceAll(l.url, "$SERVER", s.Name)
	}
	return nil
}

// run starts a process whose home is the target's folder. The process ends with the target; if the bench is killed, the reaper
// ends the process.
func (t *target) run(argv, env []string) (*proc.Process, error) {
	base := []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + t.dir, "XDG_CACHE_HOME=" + filepath.Join(t.dir,
		".cache"),
		"XDG_CONFIG_HOME=" + filepath.Join(t.dir, ".config"), "XDG_RUNTIME_DIR=" + t.dir, "TMPDIR=" + t.dir, "DO_NOT_TRACK=1",
		"NO_COLOR=1"}
	t.log.note("start: %s", clip(strings.Join(argv, " "), 400))
	return proc.Start(proc.Spec{Command: argv[0], Args: argv[1:], Env: append(base, env...), Dir: t.dir,
		OnStderr: func(line string) { t.log.note("stderr: %s", line) }}, t.owner.reaper)
}

// session returns the session through which a server is reached. The first call opens it, and waits until the gateway answers
// or ends, or ctx ends.
func (t *target) session(ctx context.Context, server string) (session, error) {
	key := t.key(server)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.greetings[key] != nil {
		return t.sessions[key], nil
	}
	if t.transport == overStdio {
		greeting, err := handshake(ctx, t.sessions[key])
		t.greetings[key] = greeting
		return t.sessions[key], err
	}
	s, greeting, err := t.dial(ctx, server)
	if err == nil {
		t.sessions[key], t.greetings[key] = s, greeting
	}
	return s, err
}

// key returns the key of a server's session in sessions: the server's name, or "" if all servers share one session.
func (t *target) key(server string) string {
	if t.peer.single || t.transport == overHTTP && t.perServer() {
		return server
	}
	return ""
}

// perServer reports whether the servers have different endpoints.
func (t *target) perServer() bool {
	first := ""
	for _, u := range t.urls {
		if first != "" && u != first {
			return true
		}
		first = u
	}
	return false
}

// dial opens one more session over HTTP. It repeats that until it succeeds, the gateway ends, or ctx ends. It also returns the
// result of initialize.
func (t *target) dial(ctx context.Context, server string) (session, []byte, error) {
	var last error
	for ctx.Err() == nil {
		s, err := newHTTPSession(t.urls[server])
		if err != nil {
			return nil, nil, err
		}
		greeting, err := handshake(ctx, s)
		if err == nil {
			return s, greeting, nil
		}
		s.close()
		last = err
		if t.gone() {
			return nil, nil, fmt.Errorf("the gateway has ended: %s", t.running[0].ExitReason())
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, nil, errors.Join(last, ctx.Err())
}

func (t *target) gone() bool {
	for _, p := range t.running {
		select {
		case <-p.Done():
			return true
		default:
		}
	}
	return false
}

// params returns the parameters of tools/call for a tool of a server.
func (t *target) params(server, tool, args string) []byte {
	name, arguments := t.peer.call(server, tool, json.RawMessage(args))
	return []byte(`{"name":` + string(wire.Encode(name)) + `,"arguments":` + arguments + `}`)
}

// call calls a tool of a server and returns the raw result.
func (t *target) call(ctx context.Context, server, tool, args string) ([]byte, error) {
	s, err := t.session(ctx, server)
	if err != nil {
		return nil, err
	}
	return s.send(ctx, "tools/call", t.params(server, tool, args))
}

// echo calls the tool echo of a server once, and fails unless the answer has the text of the call.
func (t *target) echo(ctx context.Context, server string) error {
	const text = "are-you-there-7"
	result, err := t.call(ctx, server, "echo", `{"text":"`+text+`"}`)
	if err == nil && !strings.Contains(string(result), text) {
		err = fmt.Errorf("the echo was %s", clip(string(result), 300))
	}
	return err
}

// ready repeats echo until it succeeds, the gateway ends, or ctx ends.
func (t *target) ready(ctx context.Context, server string) error {
	for {
		err := t.echo(ctx, server)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || t.gone() || errors.Is(err, errGone) {
			return fmt.Errorf("%s: no answer: %w", server, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// settled waits until the last server answers and the gateway's list of tools stays the same for half a second, so that the
// list has the tools of all servers.
func (t *target) settled(ctx context.Context, servers []string) error {
	if err := t.ready(ctx, servers[len(servers)-1]); err != nil {
		return err
	}
	for last := ""; ; {
		surface, err := t.surface(ctx, servers)
		if err != nil || surface == last {
			return err
		}
		last = surface
		time.Sleep(500 * time.Millisecond)
	}
}

func (t *target) pids() (pids []int) {
	for _, p := range t.running {
		pids = append(pids, p.PID())
	}
	return pids
}

// stop ends the gateway and its servers. The folder is kept until the end of the bench, for a warm start.
func (t *target) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, s := range t.sessions {
		s.close()
	}
	var all sync.WaitGroup
	for _, p := range append(t.running, t.servers...) {
		all.Go(func() { _ = p.Close(ctx, proc.Grace{EOF: 300 * time.Millisecond, TERM: time.Second}) })
	}
	all.Wait()
}
