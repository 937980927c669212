package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// Several processes of mcpx, the replicas, may serve the same clients, and each request of a client may reach a different replica.
// Any replica can serve most messages. But some messages need data that only one replica has in memory: an open question to the
// client, a suspended call, a call that is still running, a task, a GET or HTTP+SSE stream, or a session with a PerClient
// server. Such a message is forwarded to that replica before any part of it is executed, and the response comes back the same
// way.

// Peers are the other replicas. Implementations are safe for concurrent use.
type Peers interface {
	// Self returns the id of this process: 8 letters and digits, which differ after each start.
	Self() string
	// IsLive reports whether a replica is running, as far as this replica knows. It does not wait.
	IsLive(replica string) bool
	// Stays reports whether a replica is live and has not begun to shut down. For this replica it is always true.
	Stays(replica string) bool
	// Home returns the home of a client program: the replica that has the program's sessions with PerClient servers (servers with
	// a session for each client). program identifies the client program (see [caller.Home]) or the principal. If there is no
	// home, or the home does not stay (see Stays), this replica becomes the home. anew means that the sessions of an earlier
	// home are lost.
	Home(ctx context.Context, program string) (replica string, anew bool, err error)
	// Forward sends a request with this body to a replica, and writes the response to w. It stops when the context of r ends.
	// The replica handles the request with a context from [Forwarded]. An error means that the response is not complete. The
	// error wraps ErrUntaken if the replica has not begun to handle the request, and state.ErrAway if no replica can be reached
	// now.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, replica string) error
	// Everyone sends a message about a session to all other replicas, which pass it to [Front.Told]. It does not wait.
	Everyone(view, session string, message []byte)
	// Ended tells all other replicas that a session was ended, and waits until they have stopped answering requests of the
	// session. It does not wait longer than a few seconds for a replica that does not answer.
	Ended(ctx context.Context, view, session string)
}

// ErrUntaken is the error of [Peers.Forward] for a request that the other replica has not begun to handle.
var ErrUntaken = errors.New("the request was not executed")

type forwardedKey struct{}

// Forwarded marks the context of a request that came from another replica, so that the request is not forwarded again.
func Forwarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, forwardedKey{}, true)
}

// toldFollowed is the method of a message to other replicas: the client has subscribed to one more resource. The params contain
// the URI of the resource.
const toldFollowed = "mcpx/followed"

// questionID is the beginning of the ids of questions to clients. The id of the replica and a number follow. Without Peers, the
// ids are numbers.
const questionID = "q-"

// replicaLen is the length of the id of a replica.
const replicaLen = 8

// waitHandle matches a handle of package results: the name with which a client asks for a result later, for example because the
// call is still running. The handle begins with the letter r and the id of the replica that has the result.
var waitHandle = pattern.New(`\br([a-z0-9]{8})r[a-z2-7]{20}\b`)

// homed reports whether requests of one client must all reach the same replica, because the view has a PerClient server.
func (f *Front) homed() bool {
	return f.options.Peers != nil && f.options.Homed != nil && len(f.options.Homed()) > 0
}

// elsewhere returns the replica to which a message must be forwarded. The result is empty if this replica can answer, if the
// replica that could answer has ended, or if another replica has forwarded the message to this one. home means that the returned
// replica is the client's home: the client can use its sessions with PerClient servers only there.
func (f *Front) elsewhere(e *exchange, m *message) (replica string, home bool) {
	peers := f.options.Peers
	if peers == nil || e.r.Context().Value(forwardedKey{}) != nil {
		return "", false
	}
	for i, find := range []func(*exchange, *message) string{f.namedIn, f.homeOf, f.streamOf} {
		if to := find(e, m); to == peers.Self() {
			return "", false
		} else if to != "" && peers.IsLive(to) {
			return to, i == 1
		}
	}
	return "", false
}

// untaken is called when forwarding a request has failed with err. It reports whether this replica must serve the request now,
// because the other replica has not begun to handle it. If no replica can be reached now (state.ErrAway), this replica serves the
// request only if the other replica is the client's home (home is true). The request can then use all servers except PerClient
// servers, and untaken marks its context accordingly.
func (e *exchange) untaken(err error, home bool) bool {
	if away := errors.Is(err, state.ErrAway); !errors.Is(err, ErrUntaken) || away && !home {
		return false
	} else if away {
		e.r = e.r.WithContext(request.FarFromHome(e.r.Context()))
	}
	return true
}

// reaches reports whether a request can be forwarded to a replica: it is another replica that is live, and the request was not
// forwarded before.
func (f *Front) reaches(r *http.Request, replica string) bool {
	peers := f.options.Peers
	return peers != nil && r.Context().Value(forwardedKey{}) == nil && replica != peers.Self() && peers.IsLive(replica)
}

// namedIn returns the replica that a message names: the ids of questions, suspended calls, tasks and running calls each contain
// the id of the replica that made them. It returns an empty id if the message has none of these.
func (f *Front) namedIn(_ *exchange, m *message) string {
	switch {
	case m == nil:
	case m.Method == "":
		return replicaOfQuestion(m.ID)
	case m.Method == "notifications/progress":
		return replicaOfQuestion(wire.Member(m.Params, "progressToken"))
	case m.input.State != nil:
		state, _ := wire.Text(m.input.State)
		if process, ours := strings.CutPrefix(state, suspendedState); ours && len(process) > replicaLen && process[replicaLen] == '-' {
			return process[:replicaLen]
		}
	case strings.HasPrefix(m.Method, "tasks/"):
		_, own, _ := strings.Cut(wire.MemberText(m.Params, "taskId"), "/@")
		if len(own) > replicaLen && own[replicaLen] == '/' {
			return own[:replicaLen]
		}
	case m.arguments != nil && bytes.Contains(m.Params, []byte("wait_result")):
		if found := waitHandle.FindStringSubmatch(string(m.arguments)); found != nil {
			return found[1]
		}
	}
	return ""
}

// spoiltAnswer reports whether a message is refused and can only be the answer to a question that a replica has asked. That replica
// must get the message, because it has to end the question (see [questions.spoilt]).
func (m *message) spoiltAnswer() bool {
	return m.refusal != nil && m.Method == "" && replicaOfQuestion(m.ID) != ""
}

// replicaOfQuestion returns the replica that asked a question, from the question's id.
func replicaOfQuestion(id json.RawMessage) string {
	if len(id) < len(`"q-12345678-`) || string(id[:len(`"q-`)]) != `"`+questionID {
		return ""
	}
	return string(id[len(`"q-`) : len(`"q-`)+replicaLen])
}

// homeOf returns the replica that has the client's sessions with PerClient servers. If that replica has ended or is shutting
// down, this replica becomes the client's home. The result is empty if the message uses none of these sessions, if the home is
// not known, or for a modern message without a principal.
func (f *Front) homeOf(e *exchange, m *message) string {
	if !f.homed() || request.IsFar(e.r.Context()) {
		return ""
	}
	peers, ctx := f.options.Peers, e.r.Context()
	if e.who != nil && f.options.PerPrincipal != nil && len(f.options.PerPrincipal()) > 0 {
		return f.homeOfPrincipal(e)
	}
	if m != nil && (m.modern() || headerOf(e.r, sessionHeader) == "") {
		if e.who == nil || !m.modern() || !m.row.asks {
			return ""
		}
		client := caller.New(f.place(caller.Place{Principal: e.who}), m.said())
		client = client.AtHome(nil)
		home, anew, err := peers.Home(ctx, f.name+" "+client.HomeKey())
		if err != nil {
			f.log.Warn("the home of a client is not known", "error", err)
		}
		e.anew = anew
		return home
	}
	record := f.recordOf(e)
	if record == nil || record.Home == peers.Self() || record.Home != "" && peers.Stays(record.Home) {
		if record == nil {
			return ""
		}
		return record.Home
	}
	next, err := f.options.Sessions.Change(ctx, headerOf(e.r, sessionHeader), func(record *Session) {
		if record.Home == "" || !peers.Stays(record.Home) {
			record.Home, record.Anew = peers.Self(), record.Home != ""
		}
	})
	if err != nil {
		return ""
	}
	return next.Home
}

// homeOfPrincipal returns the replica that has all sessions of a principal with PerClient servers. It is used if the view has
// servers with one session for each principal: then all requests of the principal to such views go to that replica, whichever
// client or session they come from.
func (f *Front) homeOfPrincipal(e *exchange) string {
	ctx := e.r.Context()
	home, anew, err := f.options.Peers.Home(ctx, "principal "+e.who.Key())
	if err != nil {
		f.log.Warn("the home of a principal is not known", "error", err)
	}
	e.anew = anew
	if anew && f.recordOf(e) != nil {
		_, err := f.options.Sessions.Change(ctx, headerOf(e.r, sessionHeader), func(record *Session) { record.Anew = true })
		if err != nil {
			f.log.Debug("what a session has lost cannot be stored", "error", err)
		}
	}
	return home
}

// beganAnew returns a text for the result of a call if the client may have lost its session with a PerClient server. Either the
// replica that had this session has ended, or this process has taken up the client's session with mcpx from its record (see
// [session.lost]). The text is empty if the client has lost no session or was told already, or if the record of its session cannot
// be changed.
func (f *Front) beganAnew(ctx context.Context, r *incoming) string {
	const gone = "mcpx: your session with %s began anew, because %s: what the server kept in it is gone"
	switch {
	case r.session != nil && r.session.lost(r.event.Server):
		return fmt.Sprintf(gone, r.event.Server, "mcpx was restarted or you were idle")
	case !f.homed():
		return ""
	case r.session == nil:
		if !r.anew {
			return ""
		}
	case !r.session.record.Load().Anew, f.change(ctx, r.session, func(record *Session) { record.Anew = false }) != nil:
		return ""
	}
	return fmt.Sprintf(gone, "each of "+strings.Join(f.options.Homed(), ", "), "its replica has ended")
}

// streamOf is for messages that change what is sent on the GET stream of a session: it returns the replica that has the stream.
// For any other message it returns an empty id.
func (f *Front) streamOf(e *exchange, m *message) string {
	if m == nil || !m.onStream() {
		return ""
	}
	if record := f.recordOf(e); record != nil {
		return record.Stream
	}
	return ""
}

// onStream reports whether a request changes what is sent on the GET stream. Such a request may be executed twice
// without harm.
func (m *message) onStream() bool {
	switch m.Method {
	case "resources/subscribe", "resources/unsubscribe", "logging/setLevel":
		return true
	}
	return false
}

// recordOf returns the record of the session that a request names. It returns nil if the principal of the request has no such
// session in this view, or if the store cannot be reached.
func (f *Front) recordOf(e *exchange) *Session {
	id := headerOf(e.r, sessionHeader)
	if id == "" {
		return nil
	}
	record, err := f.options.Sessions.Get(e.r.Context(), id)
	if err != nil || f.foreign(record, e.who) {
		return nil
	}
	return record
}

// passed forwards a message if another replica must answer it. It returns false if this replica has to answer. m is nil for a GET.
func (f *Front) passed(e *exchange, m *message, body []byte) bool {
	for range 2 { // if a replica has just ended, another one may have to answer
		to, home := f.elsewhere(e, m)
		if to == "" {
			return false
		}
		if f.forward(e, m, body, to, home) {
			return true
		}
	}
	return false
}

// forward forwards a request. It returns false if the request was not answered and can safely be executed here. home is from
// [Front.elsewhere].
func (f *Front) forward(e *exchange, m *message, body []byte, replica string, home bool) bool {
	w := &forwarding{exchange: e}
	send := f.send
	if m != nil && m.Method == "" {
		send = f.sendAnswer
	}
	err := send(w, e.r, m, body, replica)
	// If the credential was revoked, the client is still there, and waits for the answer.
	if err == nil || e.r.Context().Err() != nil && !errors.Is(err, caller.ErrRevoked) {
		return true
	}
	f.log.Warn("a request could not be answered by another replica", "replica", replica, "error", err)
	switch isRequest := m != nil && m.isRequest(); {
	case !w.begun && (e.untaken(err, home) || m == nil || m.onStream() || isRequest && home && !m.row.asks):
		return false // in all these cases, the request was not begun or may be executed twice
	case !w.begun && errors.Is(err, errUnheard): // with 202, the client would think that it has answered, and the call would wait on
		e.refuse(http.StatusServiceUnavailable, nil, &rpcError{message: err.Error()})
	case !w.begun && !isRequest:
		e.accepted()
	case !isRequest || w.begun && e.w.Header().Get("Content-Type") != "text/event-stream":
		// The response simply ends. Either nobody waits for it, or the client notices that it is incomplete.
	default:
		if e.streaming = w.begun; w.partial {
			e.write([]byte("\n\n"))
		}
		e.answer(refuse(m.ID, forwardError(err)).body)
	}
	return true
}

// send forwards a request with its body to a replica. It writes the response to w, and returns when the response is complete.
// If this front ends the request meanwhile, as [Front.EndCalls] does, send returns early, with an error. m is nil for a GET.
func (f *Front) send(w http.ResponseWriter, r *http.Request, m *message, body []byte, replica string) error {
	ctx, open := f.stateless.begin(r.Context(), "forwarded", m == nil || m.row.lasts)
	defer f.stateless.done(open)
	err := f.options.Peers.Forward(w, r.WithContext(ctx), body, replica)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func forwardError(err error) *rpcError {
	message := err.Error()
	switch {
	case errors.Is(err, caller.ErrRevoked):
		return &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: " + message}
	case errors.Is(err, errStopping), errors.Is(err, errClosed):
	case errors.Is(err, state.ErrAway):
		message = "only another replica of mcpx can answer this, which cannot be reached while NATS is away; " +
			"a call that had begun may have been executed. Try again later"
	default:
		message = "the replica of mcpx that had this call is gone (" + message + "); the call may have been executed. Call again"
	}
	return &rpcError{code: codeRefused, message: message}
}

// forwarding writes the response of another replica to the client.
type forwarding struct {
	*exchange
	begun   bool
	partial bool // the last event is incomplete
}

// Header implements http.ResponseWriter.
func (w *forwarding) Header() http.Header { return w.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *forwarding) WriteHeader(status int) {
	w.begun = true
	w.extend(0)
	w.w.WriteHeader(status)
}

// Write implements http.ResponseWriter. If the client does not read, Write blocks only until a deadline.
func (w *forwarding) Write(data []byte) (int, error) {
	w.begun, w.partial = true, !bytes.HasSuffix(data, []byte("\n\n"))
	w.extend(len(data))
	return w.w.Write(data)
}

// Flush implements http.Flusher.
func (w *forwarding) Flush() { w.flush() }

// passedOfBatch forwards one message of a batch if another replica must answer it. It returns false if this replica has to answer.
// The other replica's answer, and the notifications before the answer, become events of the batch's response.
func (f *Front) passedOfBatch(e *exchange, m *message, body []byte) bool {
	to, home := f.elsewhere(e, m)
	if to == "" {
		return false
	}
	w := &batched{forwarding: forwarding{exchange: e}, header: make(http.Header)}
	switch err := f.send(w, e.r, m, body, to); {
	case e.untaken(err, home):
		return false
	case !m.isRequest():
	case err != nil:
		if w.partial {
			e.write([]byte("\n\n"))
		}
		e.answer(refuse(m.ID, forwardError(err)).body)
	case w.body.Len() > 0: // otherwise the response was a stream, or the client has cancelled the request
		e.answer(w.body.Bytes())
	}
	return true
}

// batched receives the response of another replica to one message of a batch. If the response is an event stream, batched
// passes it on to the client while it arrives. Any other response is kept in body.
type batched struct {
	forwarding
	header http.Header
	body   bytes.Buffer // a response that is not an event stream
}

// Header implements http.ResponseWriter.
func (w *batched) Header() http.Header { return w.header }

// WriteHeader does nothing: the status of the batch's own response counts.
func (w *batched) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (w *batched) Write(data []byte) (int, error) {
	if w.header.Get("Content-Type") != "text/event-stream" {
		return w.body.Write(data)
	}
	if !w.streaming {
		w.start()
	}
	return w.forwarding.Write(data)
}

// Flush implements http.Flusher.
func (w *batched) Flush() {
	if w.streaming {
		w.flush()
	}
}

// everyone sends a client's notification to the other replicas, if there are any, unless the notification came from one of them. A
// replica that does not have the session in memory ignores the notification.
func (f *Front) everyone(s *session, m *message) {
	if f.options.Peers != nil && s.id != "" && !m.told && m.Method != toldFollowed {
		f.options.Peers.Everyone(f.name, s.id, notification(m.Method, m.Params))
	}
}

// Told handles a message about a session that another replica has sent with [Peers.Everyone].
func (f *Front) Told(session string, message []byte) {
	s := f.sessions.get(session)
	if s == nil {
		return
	}
	m := readMessage(message)
	m.told = true
	switch {
	case m.refusal != nil:
	case m.Method == toldFollowed:
		select {
		case s.also <- wire.MemberText(m.Params, "uri"):
		default: // the channel is full; the next GET stream subscribes to all resources of the record
		}
	default:
		f.notice(s, s.client.Load(), m)
	}
}

// streamTime limits the time for storing which replica has a session's GET stream.
const streamTime = 5 * time.Second

// recordStream runs while this replica has a session's GET stream. It writes the id of this replica into the session's record. It
// also subscribes to the resources in the record, and to those that the client requests at other replicas meanwhile. If the id
// cannot be written, some subscriptions may be made only with the next stream. When ctx ends, recordStream removes the id from the
// record, unless the record names another replica by then, or this replica has another stream of the session.
func (f *Front) recordStream(ctx context.Context, s *session, stream sender) {
	self := f.options.Peers.Self()
	at := func(change func(*Session)) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), streamTime)
		defer cancel()
		if err := f.change(bounded, s, change); err != nil {
			f.log.Debug("where the stream of a session is cannot be stored", "error", err)
		}
	}
	at(func(record *Session) { record.Stream = self })
	defer func() {
		s.listens(stream, false)
		at(func(record *Session) {
			if record.Stream == self && s.outside() == nil {
				record.Stream = ""
			}
		})
	}()
	f.followAgain(ctx, s)
	for {
		select {
		case uri := <-s.also:
			f.followAll(ctx, s.client.Load(), []string{uri}, &s.followed, s.pending)
		case <-ctx.Done():
			return
		}
	}
}
