package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is the part of a fake that all transports share: it computes what to send for each incoming message. The
// transports handle the connections and the bytes.
type server struct {
	spec Spec
	rec  *recorder
	// Cancelling ctx ends all open requests. wg counts the goroutines for which the method stop waits.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// exit ends the fake at once: the process, or all connections and sessions, depending on the transport. retire is called
	// after the last answer was sent. It ends the process or, over HTTP, all sessions.
	exit   func(code int)
	retire func(code int)

	mu       sync.Mutex
	tools    json.RawMessage       // set by HTTPServer.SetTools; replaces spec.Tools
	offered  *offer                // cache of definitions; nil after a change
	answered int                   // number of answered tool calls
	sessions map[*session]struct{} // legacy sessions whose handshake is complete
	listens  map[*call]struct{}    // open subscriptions/listen requests
	storming bool
	asks     int // number of requests that the fake has sent to clients
}

// newServer makes a server. It starts nothing, but stop must be called nevertheless.
func newServer(spec Spec, keepLog bool) (*server, error) {
	rec, err := newRecorder(spec.LogFile, keepLog)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{
		spec: spec, rec: rec, ctx: ctx, cancel: cancel, exit: func(int) {},
		sessions: map[*session]struct{}{}, listens: map[*call]struct{}{},
	}
	s.retire = func(code int) { s.exit(code) }
	return s, nil
}

// enter makes stop wait until the caller calls wg.Done. It reports false if the server has ended.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Add(1)
	return true
}

// stop ends all open requests, and waits until their goroutines have ended.
func (s *server) stop() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
	s.rec.close()
}

// session is one client: the client of a stdio fake, one Mcp-Session-Id over HTTP, or a single request over modern
// HTTP.
type session struct {
	id string
	// push sends a message that is not part of a request.
	push func(message) error

	mu      sync.Mutex
	subs    map[string]bool // URIs that the client has subscribed to
	ready   bool            // notifications/initialized has arrived
	elicits bool            // the client has declared the capability elicitation
	open    map[string]*call
	asked   map[string]chan envelope
}

func newSession(id string, push func(message) error) *session {
	return &session{id: id, push: push, open: map[string]*call{}, asked: map[string]chan envelope{}}
}

// call is one open request.
type call struct {
	ses    *session
	id     string // raw JSON
	method string
	params params
	modern bool
	ctx    context.Context
	cancel context.CancelFunc
	// note sends a message that belongs to this request, before its answer. reply sends the answer, and what faults
	// add to it.
	note  func(message) error
	reply func(...message) error

	mu   sync.Mutex
	over bool // cancelled, or the answer is being written
}

// settle marks the call as over. It reports false if the call was already over.
func (c *call) settle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.over
	c.over = true
	return first
}

func (c *call) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over
}

// begin registers a request. It is called before the next message is read, so that a cancellation right after the
// request finds it.
func (s *server) begin(ses *session, env envelope) *call {
	c := &call{ses: ses, id: string(env.ID), method: env.Method}
	json.Unmarshal(env.Params, &c.params) // invalid members stay empty; methods that need them refuse the request
	c.modern = s.isModern(env.Method, c.params)
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	ses.mu.Lock()
	ses.open[c.id] = c
	ses.mu.Unlock()
	return c
}

// isModern reports whether a request is one of the modern era.
func (s *server) isModern(method string, p params) bool {
	return s.spec.modern() && (p.Meta.Version != "" || method == "server/discover" || !s.spec.legacy())
}

func (s *server) end(c *call) {
	c.cancel()
	c.ses.mu.Lock()
	if c.ses.open[c.id] == c {
		delete(c.ses.open, c.id)
	}
	c.ses.mu.Unlock()
}

// abort cancels an open call and records why. If the call was already answered, abort does nothing.
func (s *server) abort(c *call, reason string) {
	if !c.settle() {
		return
	}
	s.rec.add(Entry{Event: EventCancel, Session: c.ses.id, ID: json.RawMessage(c.id), Method: c.method, Tool: c.tool(), Text: reason})
	c.cancel()
}

func (c *call) tool() string {
	if c.method != "tools/call" {
		return ""
	}
	return c.params.Name
}

// record adds an entry for an incoming message.
func (s *server) record(ses *session, raw []byte, env envelope) {
	e := Entry{Event: EventMessage, Session: ses.id, ID: env.ID, Method: env.Method, Size: len(raw)}
	if env.Method == "tools/call" {
		var p params
		json.Unmarshal(env.Params, &p)
		e.Tool = p.Name
	}
	if len(raw) <= maxMessage && json.Valid(raw) {
		e.Message = raw
	}
	s.rec.add(e)
}

func (s *server) garbage(ses *session, raw []byte) {
	s.rec.add(Entry{Event: EventGarbage, Session: ses.id, Size: len(raw), Text: string(raw[:min(len(raw), 200)])})
}

// take handles messages that are not requests: notifications, and answers to requests of the fake.
func (s *server) take(ses *session, env envelope) {
	switch {
	case env.Method == "notifications/initialized":
		ses.mu.Lock()
		ses.ready = true
		ses.mu.Unlock()
		if s.spec.legacy() && !s.spec.NoSession {
			s.mu.Lock()
			s.sessions[ses] = struct{}{}
			s.mu.Unlock()
			s.storm()
		}
	case env.Method == "notifications/cancelled":
		var p params
		json.Unmarshal(env.Params, &p)
		ses.mu.Lock()
		c := ses.open[string(p.RequestID)]
		ses.mu.Unlock()
		if c != nil {
			s.abort(c, "notification")
		}
	case env.Method == "" && len(env.ID) > 0:
		ses.mu.Lock()
		answers := ses.asked[string(env.ID)]
		delete(ses.asked, string(env.ID))
		ses.mu.Unlock()
		if answers != nil {
			answers <- env // does not block: the channel has a buffer of one
		}
	}
}

// forget ends a session and its open requests.
func (s *server) forget(ses *session) {
	s.mu.Lock()
	delete(s.sessions, ses)
	s.mu.Unlock()
	ses.mu.Lock()
	defer ses.mu.Unlock()
	for _, c := range ses.open {
		c.cancel()
	}
}

// serve answers a request that was registered with begin. It returns when the request is over.
func (s *server) serve(c *call) {
	defer s.end(c)
	if s.wedged() || s.spec.hangs(c.method) {
		<-c.ctx.Done()
		return
	}
	stopStorm := s.progressStorm(c)
	a := s.answer(c)
	stopStorm()
	if a.silent || c.ctx.Err() != nil && !s.spec.AnswerAfterCancel {
		return
	}
	if !c.settle() && !s.spec.AnswerAfterCancel {
		return
	}
	s.send(c, a)
}

// wedged reports whether the fake answers nothing at the moment.
func (s *server) wedged() bool {
	if s.spec.WedgeFile == "" {
		return false
	}
	_, err := os.Stat(s.spec.WedgeFile)
	return err == nil
}

// send writes an answer, and applies the faults of the spec that concern answers.
func (s *server) send(c *call, a answer) {
	isCall := c.method == "tools/call"
	id := c.id
	if _, err := strconv.Atoi(id); err == nil && s.spec.StringIDs && isCall {
		id = quote(id)
	}
	m := a.with(id)
	if isCall && s.spec.InvalidUTF8 {
		m.head = bytes.Replace(m.head, []byte(`"text":"`), []byte("\"text\":\"\xff\xfe"), 1)
	}
	if isCall && s.spec.TruncateAnswers {
		m = message{head: m.head[:len(m.head)/2]}
	}
	var out []message
	if s.spec.UnknownIDs {
		stray := textResult("answer to nobody")
		out = append(out, stray.with(`987654321`), stray.with(`"nobody"`), fails(-32600, "who was that").with(`null`))
	}
	out = append(out, m)
	if s.spec.DuplicateAnswers {
		if isCall {
			m = textResult("second answer").with(id)
		}
		out = append(out, m)
	}
	if s.spec.LateProgress && len(c.params.Meta.ProgressToken) > 0 {
		out = append(out, progress(c.params.Meta.ProgressToken, 1e6, ""))
	}
	if s.spec.AnswerBeforeRequest && c.method == "tools/list" {
		if n, err := strconv.Atoi(c.id); err == nil {
			for i := 1; i <= 3; i++ {
				out = append(out, textResult("answered too early").with(strconv.Itoa(n+i)))
			}
		}
	}
	// The entry and the count come before the answer, so that a test that has received the answer can rely on them.
	s.rec.add(Entry{Event: EventAnswer, Session: c.ses.id, ID: json.RawMessage(c.id), Method: c.method, Tool: c.tool()})
	over := isCall && s.countCall()
	c.reply(out...) // if this fails, the client has disconnected
	if over {
		s.rec.add(Entry{Event: EventExit, Text: strconv.Itoa(s.spec.ExitCode)})
		s.retire(s.spec.ExitCode)
	}
}

// countCall counts a tool call before its answer is written. It reports whether the fake must end after this answer.
func (s *server) countCall() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered++
	return s.spec.ExitAfterCalls > 0 && s.answered == s.spec.ExitAfterCalls
}

// leave ends the fake as if it had crashed.
func (s *server) leave(code int) {
	s.rec.add(Entry{Event: EventExit, Text: strconv.Itoa(code)})
	s.exit(code)
}

// pause waits for d. It reports false if the call ends before that.
func (c *call) pause(d time.Duration) bool {
	if d <= 0 {
		return c.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// notify sends a notification to every legacy session that listens to it (see the method listensTo), and to every modern
// subscription that includes it.
func (s *server) notify(method, params string) {
	s.mu.Lock()
	var push []func(message) error
	for ses := range s.sessions {
		if ses.listensTo(method, params) {
			push = append(push, ses.push)
		}
	}
	var listens []*call
	for c := range s.listens {
		if c.listensTo(method, params) {
			listens = append(listens, c)
		}
	}
	s.mu.Unlock()
	for _, p := range push {
		p(notification(method, params)) // fails if the client has disconnected
	}
	for _, c := range listens {
		c.note(notification(method, withMeta(params, `"io.modelcontextprotocol/subscriptionId":`+c.id)))
	}
}

// listensTo reports whether a subscription includes a notification.
func (c *call) listensTo(method, params string) bool {
	if method == updated {
		var uris []string
		_ = json.Unmarshal(c.params.Notifications["resourceSubscriptions"], &uris) // if this fails, there are no URIs
		return slices.ContainsFunc(uris, func(uri string) bool { return strings.HasPrefix(uriOf(params), uri) })
	}
	key := map[string]string{
		"notifications/tools/list_changed":     "toolsListChanged",
		"notifications/prompts/list_changed":   "promptsListChanged",
		"notifications/resources/list_changed": "resourcesListChanged",
	}[method]
	return string(c.params.Notifications[key]) == "true"
}

// withMeta adds these fields to the member _meta of params, which is a JSON object. If there is a _meta already, it must not be empty.
func withMeta(params, fields string) string {
	if before, after, found := strings.Cut(params, `"_meta":{`); found {
		return before + `"_meta":{` + fields + "," + after
	}
	rest := bytes.TrimSpace([]byte(params))[1:]
	sep := ","
	if bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		sep = ""
	}
	return `{"_meta":{` + fields + `}` + sep + string(rest)
}
