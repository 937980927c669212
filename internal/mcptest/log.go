package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// These are the values of Entry.Event.
const (
	// EventStart: a fake was started. PID is its process.
	EventStart = "start"
	// EventMessage: a JSON-RPC message arrived.
	EventMessage = "message"
	// EventGarbage: input arrived that is not a message; Text is its beginning.
	EventGarbage = "garbage"
	// EventCall: a tool was executed. If a fault happens first, there is no such entry. So tests can count the entries to check
	// that a call is executed at most once.
	EventCall = "call"
	// EventAnswer: the answer to a request is about to be written. A fault of the transport may still drop the
	// answer.
	EventAnswer = "answer"
	// EventCancel: an open request was cancelled. Text is "notification", or "disconnect" if a modern HTTP client has
	// closed its stream.
	EventCancel = "cancel"
	// EventDisconnect: a legacy HTTP client disconnected before it got the answer. This does not cancel the request.
	EventDisconnect = "disconnect"
	// EventHTTP: an HTTP request arrived; Text is its method and path, Header its header.
	EventHTTP = "http"
	// EventEOF: stdin was closed. EventTERM: SIGTERM or SIGINT arrived. EventExit: the fake ends; Text is its exit
	// status.
	EventEOF  = "eof"
	EventTERM = "term"
	EventExit = "exit"
)

// Entry is one thing that happened to a fake.
type Entry struct {
	Time  time.Time `json:"time"`
	PID   int       `json:"pid"`
	Event string    `json:"event"`
	// Session is the ID of the HTTP session. It is empty for other transports.
	Session string `json:"session,omitempty"`
	// ID, Method and Tool are taken from the message or the call.
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	// Size is the length of the message in bytes. Message is the message or, of an EventCall, the arguments of the tool; it is
	// empty if they have more than 16 KiB.
	Size    int             `json:"size,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	Header  http.Header     `json:"header,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// Log has the entries in the order in which they were recorded.
type Log []Entry

// Event returns the entries of one kind.
func (l Log) Event(event string) Log {
	return l.where(func(e Entry) bool { return e.Event == event })
}

// Method returns the messages with this method.
func (l Log) Method(method string) Log {
	return l.where(func(e Entry) bool { return e.Event == EventMessage && e.Method == method })
}

// Calls returns the executions of a tool, or of all tools if tool is empty.
func (l Log) Calls(tool string) Log {
	return l.where(func(e Entry) bool { return e.Event == EventCall && (tool == "" || e.Tool == tool) })
}

func (l Log) where(keep func(Entry) bool) Log {
	var out Log
	for _, e := range l {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// maxKept is the maximum number of entries that a fake in the test process keeps. It drops the oldest ones, so that the log does
// not grow during a long test and distort what the test measures.
const maxKept = 20000

// maxMessage is the length, in bytes, up to which a message is recorded.
const maxMessage = 16 << 10

// recorder writes entries to the log file, keeps them in memory, or both.
type recorder struct {
	mu     sync.Mutex
	file   io.WriteCloser
	keep   bool
	kept   Log
	counts map[string]int // number of messages by method
}

// newRecorder opens the log file for appending, if path is not empty. If keep is true, it also keeps the entries in
// memory.
func newRecorder(path string, keep bool) (*recorder, error) {
	r := &recorder{keep: keep, counts: map[string]int{}}
	if path == "" {
		return r, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	r.file = f
	return r, nil
}

// add records an entry. Each line is written with one write, so that lines of several processes do not mix.
func (r *recorder) add(e Entry) {
	e.Time, e.PID = time.Now(), os.Getpid()
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Event == EventMessage {
		r.counts[e.Method]++
	}
	if r.keep {
		if len(r.kept) >= maxKept {
			r.kept = append(r.kept[:0], r.kept[maxKept/2:]...)
		}
		r.kept = append(r.kept, e)
	}
	if r.file == nil {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		e.Message, e.ID, e.Text = nil, nil, "unencodable: "+err.Error()
		line, _ = json.Marshal(e)
	}
	r.file.Write(append(line, '\n'))
}

func (r *recorder) log() Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(Log(nil), r.kept...)
}

func (r *recorder) count(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if method != "" {
		return r.counts[method]
	}
	n := 0
	for _, c := range r.counts {
		n += c
	}
	return n
}

func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// Log returns the entries in LogFile: what has happened so far in all processes of this fake. A missing file is an
// empty log.
func (s Spec) Log(t testing.TB) Log {
	t.Helper()
	log, err := readLog(s.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func readLog(path string) (Log, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	defer f.Close()
	var log Log
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return log, nil // the last line has no newline yet: it is still being written
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		log = append(log, e)
	}
}

// Process is a process of a fake.
type Process struct {
	PID  int
	Role string // "server" or "grandchild"
}

// Pids returns the processes in PidFile: all that were ever started for this fake, oldest first.
func (s Spec) Pids(t testing.TB) []Process {
	t.Helper()
	data, err := os.ReadFile(s.PidFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("reading the process ids: %v", err)
	}
	var out []Process
	for line := range strings.Lines(string(data)) {
		pid, role, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(pid)
		if !ok || err != nil {
			continue // this line is still being written
		}
		out = append(out, Process{PID: n, Role: role})
	}
	return out
}

func writePid(path string, pid int, role string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the process id: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %s\n", pid, role)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
