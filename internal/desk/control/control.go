// Package control lets commands such as mcpx reload reach the running mcpx processes of the same user. Each process listens
// on a Unix socket in a folder that only this user can enter. When a command connects, the process sends one line of JSON
// about itself, the command sends one line with a request, and the process answers with one line.
package control

import (
	"bufio"
	"context"
	"crypto/rand"
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

	"mcpx/internal/base/delay"
)

const (
	// requestWithin is how long a process waits for the request after a command has connected. helloWithin is how long a
	// command waits for the connection, and then for the first line from the process.
	requestWithin = 5 * time.Second
	helloWithin   = 2 * time.Second
	// maxOpen is how many connections a process serves at the same time, at most. Further connections wait until the process accepts them.
	maxOpen = 4
	// maxBytes is how many bytes a process or a command reads from one connection, at most.
	maxBytes = 16 << 20
	// staleAfter is the age after which Find removes the file of a socket at which no process listens. A younger file may belong to
	// a process that is about to listen.
	staleAfter = time.Minute
	suffix     = ".sock"
)

// Process describes a running mcpx process.
type Process struct {
	PID int `json:"pid"`
	// File is the absolute path of the process's config file.
	File string `json:"file"`
	// Serves is where clients reach the process: "stdio", or a URL.
	Serves string `json:"serves"`
	// Dialled has the servers that have dialled in to the process.
	Dialled []Dialled `json:"dialled,omitempty"`
}

// Dialled is a server that has dialled in: it has connected to mcpx itself. The field For says who can use it, State whether it is
// connected, and Approved whether all its tools may be used.
type Dialled struct {
	Name     string `json:"name"`
	For      string `json:"for"`
	State    string `json:"state"`
	Tools    int    `json:"tools"`
	Approved bool   `json:"approved"`
}

// Outcome is the result of a reload. It has names of servers and paths of keys, but no values from the config.
type Outcome struct {
	// Started has the servers that are new in the config, and Stopped the servers that the config no longer has. Restarted has
	// the servers that had to start again, and Changed the servers that keep running with other settings.
	Started   []string `json:"started,omitempty"`
	Stopped   []string `json:"stopped,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	Changed   []string `json:"changed,omitempty"`
	// The changed keys outside of servers are in two lists: Keys has those that already take effect, and Later has those that take
	// effect only when mcpx starts again.
	Keys  []string `json:"keys,omitempty"`
	Later []string `json:"later,omitempty"`
	// Unavailable has the faults in the config entries of single servers, which make these servers unavailable.
	Unavailable []string `json:"unavailable,omitempty"`

	// Refused has the reasons why nothing was changed. Faults means that the reasons are faults in the config file.
	Refused []string `json:"refused,omitempty"`
	Faults  bool     `json:"faults,omitempty"`
}

// request is what a command asks for. Exactly one of its fields is set.
type request struct {
	Reload bool         `json:"reload,omitempty"`
	Logins *LoginsQuery `json:"logins,omitempty"`
}

// LoginsQuery asks for the logins of principals at servers. If End is not empty, the process ends the logins that End names.
type LoginsQuery struct {
	End []string `json:"end,omitempty"` // IDs of logins and names of principals
}

// LoginsAnswer has the logins of principals that the process has, or those that it has just ended.
type LoginsAnswer struct {
	// None is true if this process cannot have logins of principals.
	None   bool            `json:"none,omitempty"`
	Logins json.RawMessage `json:"logins,omitempty"`
	// Failed says why the process could not end all the logins that the query names; empty if it could.
	Failed string `json:"failed,omitempty"`
}

// Answers has the functions that answer commands.
type Answers struct {
	// Self describes this process for a command that has connected. It is called for each connection.
	Self   func() Process
	Reload func(context.Context) Outcome
	Logins func(context.Context, LoginsQuery) LoginsAnswer // nil: the process closes the connection without an answer
}

// Socket is the control socket of this process. The caller of Listen must close it.
type Socket struct {
	listener net.Listener
	path     string
	stop     context.CancelFunc
	served   sync.WaitGroup
}

// Listen opens a control socket in the first folder in which this is possible.
func Listen() (*Socket, error) {
	var failures []error
	for _, folder := range folders() {
		err := Claim(folder)
		if err == nil {
			path := filepath.Join(folder, strconv.Itoa(os.Getpid())+"-"+rand.Text()[:8]+suffix)
			var listener net.Listener
			if listener, err = net.Listen("unix", path); err == nil {
				return &Socket{listener: listener, path: path}, nil
			}
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// Claim creates the folder if it does not exist, and returns an error if another user can enter it. On Windows Claim does not check
// this, because the place of the folder keeps other users out.
func Claim(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return private(folder)
}

// Serve answers the requests of commands in the background until Close is called.
func (s *Socket) Serve(answers Answers) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	slots := make(chan struct{}, maxOpen)
	s.served.Go(func() { // ends with Close
		for {
			slots <- struct{}{}
			conn, err := s.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as an error about too many open files
				<-slots
				delay.Sleep(ctx, time.Second)
				continue
			}
			s.served.Go(func() { // ends when Close is called, when no request comes within requestWithin, or after the request
				defer func() { <-slots }()
				answer(ctx, conn, answers)
			})
		}
	})
}

func answer(ctx context.Context, conn net.Conn, answers Answers) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(requestWithin))
	var r request
	if write(conn, answers.Self()) != nil || read(bufio.NewReader(io.LimitReader(conn, maxBytes)), &r) != nil {
		return
	}
	var out any
	switch {
	case r.Reload:
		out = answers.Reload(ctx)
	case r.Logins != nil && answers.Logins != nil:
		out = answers.Logins(ctx, *r.Logins)
	default:
		return
	}
	_ = conn.SetDeadline(time.Now().Add(requestWithin))
	_ = write(conn, out) // ignored: if the command has ended, the outcome is still in the log
}

// Close ends Serve and the contexts of the answers, waits for the answers, and removes the socket.
func (s *Socket) Close() {
	if s.stop != nil {
		s.stop()
	}
	_ = s.listener.Close()
	s.served.Wait()
	_ = os.Remove(s.path) // on Unix, closing the listener has already removed it
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

// Running is a connection to a running mcpx process. The caller must call Reload, Logins or Close, each of which closes it.
type Running struct {
	Process
	conn net.Conn
	from *bufio.Reader
}

// Find connects to all running mcpx processes of this user. It skips the sockets of processes that were killed, and removes such
// sockets when they are old. silent is the number of processes that do not answer.
func Find(ctx context.Context) (running []*Running, silent int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	names := make(map[string]bool)
	for _, folder := range folders() {
		if private(folder) != nil { // the folder does not exist, or is not private
			continue
		}
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), suffix) || names[entry.Name()] { // two paths may lead to one folder
				continue
			}
			names[entry.Name()] = true
			all.Go(func() { // ends after two times helloWithin at the latest: once to connect, once to read
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

// errGone means that the process of a socket has ended.
var errGone = errors.New("the process has ended")

// refusedOnWindows is the error WSAECONNREFUSED of Windows, which differs from syscall.ECONNREFUSED.
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
	case errors.Is(err, fs.ErrNotExist): // the process has ended since the folder was read
		return nil, errGone
	case err != nil:
		return nil, err
	}
	r := &Running{conn: conn, from: bufio.NewReader(io.LimitReader(conn, maxBytes))}
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

// Reload makes the process read its config again, returns the outcome, and closes the connection.
func (r *Running) Reload(ctx context.Context) (out Outcome, err error) {
	err = r.ask(ctx, request{Reload: true}, &out)
	return out, err
}

// Logins asks the process for the logins of principals at servers, or ends those that query.End names, and closes the connection.
func (r *Running) Logins(ctx context.Context, query LoginsQuery) (out LoginsAnswer, err error) {
	err = r.ask(ctx, request{Logins: &query}, &out)
	return out, err
}

func (r *Running) ask(ctx context.Context, what request, out any) error {
	defer r.Close()
	defer context.AfterFunc(ctx, func() { _ = r.conn.SetDeadline(time.Unix(1, 0)) })()
	_ = r.conn.SetDeadline(time.Time{}) // no deadline, because fetching secrets may take long; ctx ends the wait
	err := write(r.conn, what)
	if err == nil {
		err = read(r.from, out)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	return nil
}

// Close closes the connection, for a caller that sends no request.
func (r *Running) Close() { _ = r.conn.Close() }
