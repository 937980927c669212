// Package control lets commands reach the running mcpx of the same user: each serving process listens at a Unix socket in
// a folder that only this user can enter. A connection gets one line of JSON about the process, sends one line with a
// request, and gets one line with the outcome.
package control

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// requestWithin bounds the wait for the request of a connection, helloWithin the wait for the line of a process.
	requestWithin = 5 * time.Second
	helloWithin   = 2 * time.Second
	// mostOpen bounds the connections that a process serves at the same time. Others wait in the backlog.
	mostOpen = 4
	// mostBytes bounds a line.
	mostBytes = 1 << 20
	// staleAfter is the age from which a socket without a listener is removed. A younger one may be about to listen.
	staleAfter = time.Minute
	suffix     = ".sock"
)

// Process is a running mcpx.
type Process struct {
	PID int `json:"pid"`
	// File is the absolute path of its config file.
	File string `json:"file"`
	// Serves is where clients reach it: "stdio", or a URL.
	Serves string `json:"serves"`
}

// Outcome is what came of a reload. It has names and places, no values of the config.
type Outcome struct {
	// Started and Stopped servers are new and gone ones, Restarted had to start again, Changed go on with other settings.
	Started   []string `json:"started,omitempty"`
	Stopped   []string `json:"stopped,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	Changed   []string `json:"changed,omitempty"`
	// Keys outside of servers are in force, Later takes effect when mcpx starts again.
	Keys  []string `json:"keys,omitempty"`
	Later []string `json:"later,omitempty"`
	// Unavailable are faults inside single servers.
	Unavailable []string `json:"unavailable,omitempty"`

	// Refused says why nothing has changed. Faults means that the config file is at fault.
	Refused []string `json:"refused,omitempty"`
	Faults  bool     `json:"faults,omitempty"`
}

type request struct {
	Reload bool `json:"reload"`
}

// Socket is the control socket of this process. The caller closes it.
type Socket struct {
	listener net.Listener
	path     string
	stop     context.CancelFunc
	served   sync.WaitGroup
}

// Listen opens the socket in the first folder where that is possible.
func Listen() (*Socket, error) {
	var failures []error
	for _, folder := range folders() {
		err := claim(folder)
		if err == nil {
			path := filepath.Join(folder, strconv.Itoa(os.Getpid())+"-"+random()+suffix)
			var listener net.Listener
			if listener, err = net.Listen("unix", path); err == nil {
				return &Socket{listener: listener, path: path}, nil
			}
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func random() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// claim makes the folder, if it does not exist, and checks that no other user can enter it.
func claim(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return private(folder)
}

// Serve answers the requests of commands, until Close.
func (s *Socket) Serve(self Process, reload func(context.Context) Outcome) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	slots := make(chan struct{}, mostOpen)
	s.served.Go(func() { // ends with Close
		for {
			slots <- struct{}{}
			conn, err := s.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files, for example
				<-slots
				pause(ctx, time.Second)
				continue
			}
			s.served.Go(func() { // ends with Close, or within requestWithin and a reload
				defer func() { <-slots }()
				answer(ctx, conn, self, reload)
			})
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func answer(ctx context.Context, conn net.Conn, self Process, reload func(context.Context) Outcome) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(requestWithin))
	var r request
	if write(conn, self) != nil || read(bufio.NewReader(io.LimitReader(conn, mostBytes)), &r) != nil || !r.Reload {
		return
	}
	out := reload(ctx)
	_ = conn.SetDeadline(time.Now().Add(requestWithin))
	_ = write(conn, out) // the command may be gone; the log has the outcome too
}

// Close ends serving and removes the socket.
func (s *Socket) Close() {
	if s.stop != nil {
		s.stop()
	}
	_ = s.listener.Close()
	s.served.Wait()
	_ = os.Remove(s.path) // on Unix, closing has removed it
}

func write(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func read(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// Running is a process that answered, with its connection. The caller calls Reload or Close.
type Running struct {
	Process
	conn net.Conn
	from *bufio.Reader
}

// Find connects to all running mcpx of this user. Sockets of killed processes are skipped, and removed after a while.
// silent counts the processes that do not answer.
func Find(ctx context.Context) (running []*Running, silent int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, folder := range folders() {
		if private(folder) != nil { // not there, or another user's
			continue
		}
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), suffix) {
				continue
			}
			all.Go(func() { // ends within helloWithin
				r, err := connect(ctx, filepath.Join(folder, entry.Name()))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					running = append(running, r)
				} else if !errors.Is(err, errGone) {
					silent++
				}
			})
		}
	}
	all.Wait()
	return running, silent
}

// errGone means that no process listens at a socket.
var errGone = errors.New("the process has ended")

// refusedOnWindows is WSAECONNREFUSED.
const refusedOnWindows = syscall.Errno(10061)

func connect(ctx context.Context, path string) (*Running, error) {
	dialer := net.Dialer{Timeout: helloWithin}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, refusedOnWindows):
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(path)
		}
		return nil, errGone
	case errors.Is(err, fs.ErrNotExist): // it ended meanwhile
		return nil, errGone
	case err != nil:
		return nil, err
	}
	r := &Running{conn: conn, from: bufio.NewReader(io.LimitReader(conn, mostBytes))}
	_ = conn.SetDeadline(time.Now().Add(helloWithin))
	if err := read(r.from, &r.Process); err != nil {
		conn.Close()
		if errors.Is(err, io.EOF) {
			return nil, errGone
		}
		return nil, err
	}
	return r, nil
}

// Reload makes the process read its config again, and closes the connection.
func (r *Running) Reload(ctx context.Context) (Outcome, error) {
	defer r.Close()
	defer context.AfterFunc(ctx, func() { _ = r.conn.SetDeadline(time.Unix(1, 0)) })()
	_ = r.conn.SetDeadline(time.Time{}) // the lookups of secrets may take long; ctx ends the wait
	var out Outcome
	err := write(r.conn, request{Reload: true})
	if err == nil {
		err = read(r.from, &out)
	}
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		return out, fmt.Errorf("no answer: %w", err)
	}
	return out, nil
}

// Close closes the connection.
func (r *Running) Close() { _ = r.conn.Close() }
