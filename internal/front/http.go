package front

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// structuredHeader lets an HTTP client choose whether it receives structuredContent.
const structuredHeader = "Mcpx-Structured-Content"

// The protocol's headers, in the canonical form of http.Header's keys.
var (
	versionHeader = http.CanonicalHeaderKey(mcp.HeaderProtocolVersion)
	sessionHeader = http.CanonicalHeaderKey(mcp.HeaderSessionID)
)

// headerOf returns a header by its canonical name. Unlike Header.Get it does not canonicalize the name, which
// would cost measurable time.
func headerOf(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// ServeHTTP answers a request with [Front.Serve]. Then it ends the returned events, so that the log and other observers get them.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.ended(f.Serve(w, r)...) }

// Serve is the streamable HTTP endpoint for both eras. Package httpd decides who may connect and how long a request may take. Serve
// returns the events of the request: what the log, the audit trail and other observers get to know about it. The caller must end
// them ([request.Journal.End]) once the answer has been sent.
func (f *Front) Serve(w http.ResponseWriter, r *http.Request) []*request.Event {
	e := f.newExchange(w, r)
	defer e.free()
	switch {
	case r.Method == http.MethodPost:
		f.post(e)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "this endpoint has GET, POST and DELETE", http.StatusMethodNotAllowed)
	case mcp.IsModernProtocol(headerOf(r, versionHeader)):
		w.Header().Set("Allow", "POST")
		http.Error(w, r.Method+" is not part of protocol version "+mcp.ProtocolVersion20260728+", which has subscriptions/listen", http.StatusMethodNotAllowed)
	default:
		if r.Method == http.MethodGet && f.passed(e, nil, nil) {
			break
		}
		s, ok := e.session(nil)
		switch {
		case !ok:
		case r.Method == http.MethodGet:
			f.events(e, s)
		default:
			if err := f.endSession(r.Context(), s); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}
	}
	return e.ended
}

// post answers a POST, whose body is one message or a batch.
func (f *Front) post(e *exchange) {
	w, r := e.w, e.r
	if media := headerOf(r, "Content-Type"); media != "application/json" {
		if media, _, err := mime.ParseMediaType(media); err != nil || media != "application/json" {
			http.Error(w, "Content-Type must be application/json", http.StatusBadRequest)
			return
		}
	}
	data, ok := f.readBody(w, r)
	if !ok {
		return
	}
	f.traced(r.RemoteAddr, true, data)
	messages, err := wire.Batch(data)
	switch {
	case errors.Is(err, wire.ErrLargeBatch):
		e.refuse(http.StatusBadRequest, nil, refusedBatch)
		return
	case len(messages) > 0:
		f.batch(e, messages)
		return
	}
	m := readMessage(data)
	switch isModern := m.modern() || mcp.IsModernProtocol(e.version); {
	case m.spoiltAnswer() && f.passed(e, m, data):
	case m.refusal != nil:
		f.refused(e, m)
	case e.unknownVersion(m.ID):
	case f.passed(e, m, data):
	case isModern && m.isRequest():
		f.modernRequest(e, m)
	case isModern && m.Method != "":
		// Modern notifications have no effect: a modern client cancels a request by closing its connection.
		w.WriteHeader(http.StatusAccepted)
	case isModern:
		http.Error(w, "no request was sent to this client", http.StatusBadRequest)
	case m.Method == "initialize" && m.ID != nil:
		f.openSession(e, m)
	default:
		if s, ok := e.session(m.ID); ok {
			f.legacyMessage(e, s, m)
		}
	}
}

// modernRequest answers a modern request. The modern era has no sessions, so each request gets a new [caller.Client]. Requests of
// the same client program (the same [caller.Home]) share one session with each PerClient server. Such a server has a session for
// each client.
func (f *Front) modernRequest(e *exchange, m *message) {
	err := e.refuseHeaders(m)
	if err == nil {
		err = m.refuseMeta()
	}
	if err != nil {
		e.refuse(http.StatusBadRequest, m.ID, err)
		return
	}
	o := &ownRequest{own: caller.New(f.place(caller.Place{
		ID: "request " + f.suspended.process + " " + strconv.FormatInt(f.requests.Add(1), 10), Peer: e.peer(),
		Principal: e.who, Headers: e.r.Header,
	}), m.said())}
	o.own = o.own.AtHome(e.connection())
	r, client := &o.incoming, &o.own
	*r = incoming{message: m, client: client, headers: e.r.Header, anew: e.anew, release: f.view.Attach(client, view.Attachment{})}
	defer func() {
		if r.release != nil {
			r.release()
		}
	}()
	f.serve(e, &f.stateless, client.ID, r)
}

// openSession answers initialize. If that succeeds, it stores the session, and sends the session's id in a header.
func (f *Front) openSession(e *exchange, m *message) {
	if over := f.options.Admission.OpenSession(e.who); over != nil {
		e.answer(refuse(m.ID, tooMany(over)).body)
		return
	}
	// The session has no id and no client name yet. f.answer takes the name from initialize; Sessions.Open makes the id.
	record := &Session{View: f.name, Principal: e.who.Key(), Began: time.Now()}
	if f.homed() {
		record.Home = f.options.Peers.Self()
	}
	before := f.newSession("", record, e.who, nil, e.r.Header)
	r := &incoming{message: m, client: before.client.Load(), session: before}
	answer := f.answer(e.r.Context(), r)
	e.ended = append(e.ended, r.event)
	if answer.code != 0 {
		f.options.Admission.CloseSession(e.who)
		e.answer(answer.body)
		return
	}
	id, err := f.options.Sessions.Open(e.r.Context(), before.record.Load(), time.Time{})
	if err != nil {
		f.options.Admission.CloseSession(e.who)
		status, why := refused(err)
		answeredWith(r.event, why.code, 0)
		e.refuse(status, m.ID, why)
		return
	}
	s := f.live(id, before.record.Load(), e.who, e.r.Header, true)
	e.w.Header().Set(mcp.HeaderSessionID, s.id)
	e.answer(answer.body)
}

// legacyMessage answers a request of a legacy session, or handles a notification or a response of its client.
func (f *Front) legacyMessage(e *exchange, s *session, m *message) {
	r := &ownRequest{incoming{message: m, session: s}, s.client.Load().Sending(e.who, e.r.Header)}
	r.client = &r.own
	if m.isRequest() {
		s.begin()
		if e.events && len(r.own.Capabilities) > len("{}") {
			r.client = r.own.Asked(s.ask(e)) // questions go on the stream of the request, as long as it is open
		}
		f.serve(e, &s.inflight, keyOf(m.ID), &r.incoming)
		return
	}
	f.notice(s, r.client, m)
	e.accepted()
}

// notice handles a notification, or the answer to a question. A notification whose method mcpx does not know is passed on to
// the other replicas, and to the view, which sends it to a server only if the view is transparent.
func (f *Front) notice(s *session, from *caller.Client, m *message) {
	if m.IsResponse() {
		s.questions.answered(m)
	}
	if m.row.notice != nil {
		m.row.notice(f, s, from, m)
	} else if !m.known() && m.Method != "" {
		f.pass(from, m)
		f.everyone(s, m)
	}
}

// pass sends a client's notification on to the servers. The view chooses them, and logs their errors.
func (f *Front) pass(from *caller.Client, m *message) {
	q := &request.Request{From: request.From{Client: from}, Method: m.Method, Params: m.Params, Notification: true}
	_, _ = f.view.Send(context.Background(), q)
}

// batch answers the messages of a batch one after the other, each answer as an event. Only protocol revision
// 2025-03-26 has batches, and it requires servers to accept them.
func (f *Front) batch(e *exchange, messages []json.RawMessage) {
	s, ok := e.session(nil)
	if !ok {
		return
	}
	e.batch = true
	// e accepts events only while a message of the batch is being answered (see reopen). A call may go on in the background after
	// its client has got an answer. The questions of this call must then go on the GET stream.
	e.close()
	for i, data := range messages {
		m := readMessage(data)
		if i > 0 {
			if over := f.admit(e.r.Context(), e.who); over != nil {
				if m.isRequest() {
					e.answer(refuse(m.ID, over).body)
				}
				continue
			}
		}
		switch {
		case m.refusal != nil && (s.questions.spoilt(m) || m.spoiltAnswer() && f.passedOfBatch(e, m, data)):
		case m.refusal != nil:
			e.answer(refuse(m.ID, m.refusal).body)
		case m.modern() || m.row.opens:
			e.answer(refuse(m.ID, &rpcError{code: mcp.INVALID_REQUEST, message: m.Method + " cannot be part of a batch"}).body)
		case f.passedOfBatch(e, m, data):
		default:
			if m.isRequest() {
				e.reopen() // serve closes e again
			}
			f.legacyMessage(e, s, m)
		}
	}
	e.batch = false
	e.accepted()
}

// refusedBatch is the error for a batch with more messages than [wire.Batch] allows.
var refusedBatch = &rpcError{code: mcp.INVALID_REQUEST, message: wire.ErrLargeBatch.Error() + "; none of them was read"}

// admit counts a message towards the limits of its principal, and waits if the limits demand a delay. It is for messages that did
// not come in an HTTP request of their own. If admit returns an error, the message is refused: it is over a limit, or ctx has
// ended.
func (f *Front) admit(ctx context.Context, who *caller.Principal) *rpcError {
	wait, over := f.options.Admission.Request(who)
	if over != nil {
		return tooMany(over)
	}
	if wait > 0 && !delay.Sleep(ctx, wait) {
		return cancelled(ctx)
	}
	return nil
}

// serve answers a request. Until then, the request is in the given open requests under key, so that the client can cancel it.
func (f *Front) serve(e *exchange, requests *inflight, key string, r *incoming) {
	row := r.row
	ctx, open := requests.begin(e.r.Context(), key, row.lasts)
	defer requests.done(open)
	r.structured = e.structured()
	e.json = e.json && !row.lasts
	if e.events || row.lasts {
		r.out = e
		defer e.close()
	}
	answer := f.answer(ctx, r)
	e.ended = append(e.ended, r.event)
	e.close()
	if !requests.wanted(open) {
		e.accepted()
		return
	}
	if r.modern() {
		e.status = statusOf(answer.code)
		e.json = e.json || e.status != http.StatusOK // an event stream would have the status 200
	}
	if len(answer.body) >= largeWrite {
		var written func()
		answer.body, written = f.counted(e.who, r.event, answer.body)
		defer written()
	}
	e.answer(answer.body)
}

// statusOf returns the HTTP status of an answer in the modern era. code is the JSON-RPC error code, or 0 for a result.
func statusOf(code int) int {
	switch code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// events serves the GET stream of a session, for messages that are not part of any request. If a session has several GET streams in
// this process, only the newest gets these messages. The older ones stay open, as the protocol permits. mcpx must not end them: the
// client would open a new stream for each ended one, which would end another stream, and so on for ever.
func (f *Front) events(e *exchange, s *session) {
	// The stream counts as an open request. So the session is not idle while the stream is open, and the end of the session ends
	// the stream. No request can have this key, because an id is a number or a quoted string.
	ctx, open := s.inflight.begin(e.r.Context(), "the stream", true)
	defer s.inflight.done(open)
	e.start()
	e.flush()
	s.listens(e, true)
	defer e.close()
	defer s.listens(e, false)
	switch {
	case f.options.Peers != nil:
		s.begin() // the client may be asked questions; its notifications/initialized may have reached another replica
		var recording sync.WaitGroup
		recording.Go(func() { f.recordStream(ctx, s, e) })
		defer recording.Wait()
	case len(s.record.Load().Followed) > 0:
		var again sync.WaitGroup
		again.Go(func() { f.followAgain(ctx, s) }) // ends with the stream at the latest
		defer again.Wait()
	}
	// s.notify sends on the newest stream of the session, which need not be e.
	follow(ctx, s.pending, func(n note) { s.notify(n.method, n.params) }, e.alive)
}

// session finds the legacy session named in the request's header. The session does not end as idle before the end of the
// exchange. If the session cannot be used, the method answers the request with an error and returns false. The error has the
// given id; if id is nil, it is plain text.
func (e *exchange) session(id json.RawMessage) (s *session, ok bool) {
	name := headerOf(e.r, sessionHeader)
	if e.unknownVersion(id) {
		return nil, false
	}
	if name == "" {
		e.refuse(http.StatusBadRequest, id, &rpcError{code: codeRefused, message: "the header Mcp-Session-Id is missing; send initialize first"})
		return nil, false
	}
	s, err := e.front.find(e.r.Context(), name, e.who, e.r.Header, e.r.Method == http.MethodDelete)
	if err != nil {
		status, why := refused(err)
		if status == http.StatusTooManyRequests && id != nil {
			status = http.StatusOK // like an initialize that is refused because of a limit
		}
		e.refuse(status, id, why)
	}
	e.held = s
	return s, err == nil
}

// unknownVersion reports whether the header names a revision that mcpx does not know. If so, it has answered the request with an
// error. The error has the given id; if id is nil, it is plain text.
func (e *exchange) unknownVersion(id json.RawMessage) bool {
	unknown := e.version != "" && !mcp.IsValidProtocolVersion(e.version)
	if unknown {
		e.refuse(http.StatusBadRequest, id, unsupportedVersion(e.version))
	}
	return unknown
}

// refuseHeaders returns the error of a modern request whose headers do not fit its body (SEP-2243, SEP-2575); otherwise nil.
func (e *exchange) refuseHeaders(m *message) *rpcError {
	mismatch := func(message string) *rpcError { return &rpcError{code: mcp.HEADER_MISMATCH, message: message} }
	switch {
	case e.version == "":
		return mismatch("the header " + mcp.HeaderProtocolVersion + " is missing")
	case m.version == "":
		return &rpcError{code: mcp.INVALID_PARAMS, message: "missing or invalid _meta field " + mcp.MetaKeyProtocolVersion}
	case e.version != m.version:
		return mismatch("the header " + mcp.HeaderProtocolVersion + " " + e.version + " does not match " + mcp.MetaKeyProtocolVersion + " " + m.version)
	}
	if m.namedBy(e.r) {
		return nil
	}
	// The header Mcp-Name repeats either the name or the URI in the params.
	var named []byte
	if m.name != nil {
		named = wire.WithMember(named, "name", m.name)
	}
	if m.uri != nil {
		named = wire.WithMember(named, "uri", m.uri)
	}
	if err := mcp.ValidateStandardHeaders(e.r.Header.Get, m.version, mcp.MCPMethod(m.Method), named); err != nil {
		return mismatch(err.Error())
	}
	// For a task, the header Mcp-Name repeats the id of the task (SEP-2663), which mcp-go does not compare.
	if name := headerOf(e.r, mcp.HeaderName); name != "" && strings.HasPrefix(m.Method, "tasks/") {
		if id, ok := mcp.DecodeHeaderValue(name); !ok || id != wire.MemberText(m.Params, "taskId") {
			return mismatch("the header " + mcp.HeaderName + " does not match params.taskId")
		}
	}
	return nil
}

// namedBy reports whether the headers repeat the method and the name or URI of the message, byte for byte. If it returns false,
// the headers may still be right: for example, a value may be encoded, or the message may have neither name nor URI.
func (m *message) namedBy(r *http.Request) bool {
	value := m.name
	if m.Method == string(mcp.MethodResourcesRead) {
		value = m.uri
	}
	name := headerOf(r, mcp.HeaderName)
	return name != "" && headerOf(r, mcp.HeaderMethod) == m.Method && len(value) == len(name)+2 && value[0] == '"' &&
		string(value[1:len(value)-1]) == name && !strings.Contains(name, `\`) && !strings.HasPrefix(name, "=?")
}

// structured returns the value of structuredHeader in lower case: it says whether the client wants structuredContent. It is
// empty without the header.
func (e *exchange) structured() view.StructuredPolicy {
	return view.StructuredPolicy(strings.ToLower(headerOf(e.r, structuredHeader)))
}

// peer returns the name of the client's connection; empty if the headers name a proxy (see proxied).
func (e *exchange) peer() string {
	if e.proxied() {
		return ""
	}
	return "connection " + e.r.RemoteAddr
}

// connection returns the client's connection; nil if it is unknown, or if the headers name a proxy (see proxied).
func (e *exchange) connection() *caller.Connection {
	if e.proxied() {
		return nil
	}
	return caller.ConnectionOf(e.r.Context())
}

// proxied reports whether the headers say that a proxy has sent the request. A proxy may use one connection for several
// clients.
func (e *exchange) proxied() bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if headerOf(e.r, name) != "" {
			return true
		}
	}
	return false
}
