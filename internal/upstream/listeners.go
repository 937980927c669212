package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/clock"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// listener is an open call that gets the progress and log messages of the server.
type listener struct {
	client        *caller.Client
	progress, log func(params json.RawMessage) // a func is nil if nobody wants such messages
	noLevel       bool                         // the client has set no log level
	timeout       time.Duration
	clock, idle   *clock.Clock // the limits of the whole call and of the time without progress; nil means no limit
	asked         int          // how many open questions were put to this call; guarded by the lock of the session
	task          string       // the id of the task whose result the call waits for (tasks/result); empty for other calls

	mu     sync.Mutex
	closed bool
	asking map[*context.CancelCauseFunc]struct{} // pointers to the funcs that cancel the open questions of the call when it ends
}

// tell calls f, one of the listener's callbacks, unless the call has ended.
func (h *listener) tell(f func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && f != nil {
		f(params)
	}
}

// over reports whether the call has ended.
func (h *listener) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// openCalls are the calls of a session. The session's lock guards them.
type openCalls struct {
	listeners map[int64]*listener // by request id
	any       bool                // there was at least one call
	first     string              // the key of the client program that made the first call; see [caller.Client.Program]
	shared    bool                // a program other than first has called since
	// abandoned[0] is the call that was given up last. abandoned[1] is the last call that a different program gave up. The server
	// may still log for an abandoned call. So the open calls of other programs get no log messages from a shared stream until
	// lateLogs has passed. Two abandoned calls are enough for this check: their programs differ, so at least one of the two is not
	// the program of the open calls. Questions of the server are not withheld, because otherwise one client could block the
	// questions to all others.
	abandoned [2]abandonedCall
	ended     map[string]time.Time // when the last call of each program ended (see lateLogs); used only if [Spec.OnLog] is set
}

// abandonedCall says which program gave up a call, and when.
type abandonedCall struct {
	program string
	at      time.Time
}

// abandon records that the program has just given up a call.
func (c *openCalls) abandon(program string) {
	if c.abandoned[0].program != program {
		c.abandoned[1] = c.abandoned[0]
	}
	c.abandoned[0] = abandonedCall{program, time.Now()}
}

// listenFor registers an open request. Once unlisten has returned, none of the request's callbacks runs.
func (s *session) listenFor(id int64, r *call) {
	h := &listener{
		client: r.Client, progress: r.Sink.Progress, log: r.Sink.Log, noLevel: r.Sink.Level == "", clock: r.clock, idle: r.idle,
		timeout: cmp.Or(max(r.Timeout, 0), s.spec.Timeouts.Call),
	}
	if r.Method == "tasks/result" {
		h.task = wire.MemberText(r.Params, "taskId")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	program := r.Client.Program()
	if !s.calls.any {
		s.calls.any, s.calls.first = true, program
	}
	s.calls.shared = s.calls.shared || program != s.calls.first
	s.calls.listeners[id] = h
}

// busy reports whether calls are open, and the longest timeout among them.
func (s *session) busy() (busy bool, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.calls.listeners {
		longest = max(longest, h.timeout)
	}
	return len(s.calls.listeners) > 0, longest
}

// unlisten removes an open request; its callbacks are not called any more. abandoned means that its caller gave up,
// but the server may still work on the request.
func (s *session) unlisten(id int64, abandoned bool) {
	s.mu.Lock()
	h := s.calls.listeners[id]
	delete(s.calls.listeners, id)
	if h != nil && abandoned {
		s.calls.abandon(h.client.Program())
	}
	if h != nil && s.spec.OnLog != nil {
		s.forgetEnded()
		s.calls.ended[h.client.Program()] = time.Now()
	}
	s.mu.Unlock()
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for cancel := range h.asking {
		(*cancel)(errCallOver)
	}
}

// errCallOver is the cause with which the questions of an ended call are cancelled.
var errCallOver = errors.New("the call is over")

// during stops the clocks of the calls until resume is called, because the client now answers a question of the server. If the last
// of these calls ends before that, the func cancel is called, which cancels the question.
func during(calls []*listener, cancel context.CancelCauseFunc) (resume func()) {
	var open atomic.Int64
	open.Store(int64(len(calls)))
	overs := make([]func(), len(calls))
	for i, h := range calls {
		overs[i] = h.asks(func(cause error) {
			if open.Add(-1) == 0 {
				cancel(cause)
			}
		})
	}
	return func() {
		for _, over := range overs {
			over()
		}
	}
}

// asks stops the clocks of the call until resume is called, because the client now answers a question of the server. If the call
// ends before that, or has ended already, the func cancel is called, which cancels the question.
func (h *listener) asks(cancel context.CancelCauseFunc) (resume func()) {
	var releases []func()
	for _, c := range []*clock.Clock{h.clock, h.idle} {
		if c != nil {
			releases = append(releases, c.Hold())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking == nil {
		h.asking = make(map[*context.CancelCauseFunc]struct{})
	}
	if h.asking[&cancel] = struct{}{}; h.closed {
		cancel(errCallOver)
	}
	return func() {
		h.mu.Lock()
		delete(h.asking, &cancel)
		h.mu.Unlock()
		for _, release := range releases {
			release()
		}
	}
}

// progressed passes a progress notification on to the call whose progress token it contains.
func (s *session) progressed(params json.RawMessage) {
	id, ok := wire.IntID(wire.Member(params, "progressToken"))
	if !ok {
		return
	}
	s.mu.Lock()
	h := s.calls.listeners[id]
	s.mu.Unlock()
	if h != nil {
		h.tell(h.progress, s.spec.originated(params))
	}
}

// shared reports whether several programs have used the session. If so, errors of calls do not quote the noise of the server, which
// is output that is no message. mcpx cannot tell to which call the noise belongs.
func (s *session) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.shared
}

// mcpx assumes that a server may still log for a call during the time lateLogs after the end of the call. In a session with
// [Spec.OnLog], mcpx assumes this for all calls, otherwise only for abandoned calls.
const lateLogs = 2 * time.Minute

// callsOf returns the open calls that a message of the server may belong to, oldest first. If streamID is not 0, the message came
// on the stream of the request with this id, and callsOf returns only that call. Otherwise the message came on a shared stream, and
// callsOf returns all open calls. If task is not empty, these are only the calls that wait for the result of this task. callsOf
// returns nil if the calls have different clients. The func key returns a key that identifies a client. The caller holds the lock.
func (s *session) callsOf(streamID int64, task string, key func(*caller.Client) string) (calls []*listener) {
	if streamID > 0 {
		if h := s.calls.listeners[streamID]; h != nil {
			calls = append(calls, h)
		}
		return calls
	}
	for _, id := range slices.Sorted(maps.Keys(s.calls.listeners)) {
		h := s.calls.listeners[id]
		if task != "" && h.task != task {
			continue
		}
		if len(calls) > 0 && key(h.client) != key(calls[0].client) {
			return nil
		}
		calls = append(calls, h)
	}
	return calls
}

// lateLog reports whether a log message on a shared stream (streamID is 0) may be for a call of another program that has ended (see
// [caller.Client.Program]). The client of the open calls must then not get the message. If that client has set a log level, only an
// abandoned call of the last lateLogs is meant, else any call that another program has ever made in this session. The caller holds the
// lock.
func (s *session) lateLog(streamID int64, calls []*listener) bool {
	if streamID != 0 || len(calls) == 0 {
		return false
	}
	return calls[0].noLevel && s.calls.shared || slices.ContainsFunc(s.calls.abandoned[:], func(a abandonedCall) bool {
		return a.program != calls[0].client.Program() && time.Since(a.at) <= lateLogs
	})
}

// forgetEnded forgets the programs whose last call ended longer than lateLogs ago. The caller holds the lock.
func (s *session) forgetEnded() {
	if s.calls.ended == nil {
		s.calls.ended = make(map[string]time.Time)
	}
	maps.DeleteFunc(s.calls.ended, func(_ string, at time.Time) bool { return time.Since(at) > lateLogs })
}

// cause returns the program whose call may have caused a log message on a shared stream. Such a call is open, or ended no longer
// than lateLogs ago. program is empty if there is no such call. ok is false if several programs have such calls, or if the call is
// from no client. The caller holds the lock.
func (s *session) cause() (program string, ok bool) {
	s.forgetEnded()
	programs := maps.Clone(s.calls.ended)
	for _, h := range s.calls.listeners {
		programs[h.client.Program()] = time.Now()
	}
	for program = range programs {
	}
	return program, len(programs) == 0 || len(programs) == 1 && program != ""
}

// logged passes a log message of the server on to the oldest of the calls that it may belong to. If there is no such call, or the
// call wants no log messages, the message goes to the client that owns the session. If the session has no owner because several
// client programs share it ([Spec.OnLog] is set), only a message on a shared stream is passed on: if exactly one program has calls
// that may have caused the message, it goes to this program; if no call may have caused it, it goes to all programs. Any other
// message goes to no client, because no client may read the messages of another. mcpx then writes it to its own log.
//
// A message on a shared stream may also be for a call that the server has answered already, while another program has the only open
// call. With OnLog this program does not get it (see cause). Otherwise it gets it only if it has set a log level (see lateLog), so that
// nothing of others reaches clients that have not asked for log messages.
func (s *session) logged(params json.RawMessage, streamID int64) {
	if !json.Valid(params) {
		return
	}
	s.mu.Lock()
	calls := s.callsOf(streamID, "", (*caller.Client).Program)
	if s.lateLog(streamID, calls) {
		calls = nil
	}
	cause, ok := "", false
	if s.spec.OnLog != nil && streamID == 0 {
		if cause, ok = s.cause(); !ok {
			calls = nil // an ended call of another program may have caused it, too
		}
	}
	s.mu.Unlock()
	owner, params := s.spec.owner(), s.spec.signed(params)
	switch {
	case len(calls) > 0 && calls[0].log != nil:
		calls[0].tell(calls[0].log, params)
	case owner != nil && owner.Notify != nil:
		owner.Notify("notifications/message", params)
	case ok:
		s.spec.OnLog(cause, params)
	default:
		s.spec.Logger.Debug("a log message that may belong to any client", "params", s.spec.Secrets.Line(string(params), 500))
	}
}

// validText returns a copy of params as valid UTF-8; nil stays nil.
func validText(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return nil
	}
	return bytes.ToValidUTF8(bytes.Clone(params), []byte("\ufffd"))
}
