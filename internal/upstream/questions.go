package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

const (
	// answerTime bounds how long a client may take to answer, since its user may be away. The clocks of the call
	// are stopped meanwhile.
	answerTime = time.Hour
	// maxQuestions bounds the open questions of one legacy session, and the questions in one input_required result.
	maxQuestions = 100
	// cancelTime is how long mcpx waits after the end of a call before it answers the questions of that call with an error. The
	// server should get the cancellation of the call first.
	cancelTime = time.Second
)

// questions are the requests of a legacy server that wait for a client's answer. The method end cancels them and
// waits for their goroutines.
type questions struct {
	mu    sync.Mutex
	ended bool
	open  map[string]context.CancelCauseFunc // by the id that the server gave the request
	// visits are the clients that got a URL to open, by the id of the elicitation. A server can ask that the user opens a URL, and
	// report later that the user has done what the page asks. Many users never do that, so only the newest URLs are remembered
	// ([lru.Usual]).
	visits lru.Map[string, caller.Client]
	all    sync.WaitGroup
}

// errTakenBack ends a question that the server has cancelled.
var errTakenBack = errors.New("the server cancelled the question")

// begin registers an open question and returns a context for it. It returns false if too many questions are open, a question
// with this id is open, or the session has ended. If it returns true, the caller must call the method done.
func (q *questions) begin(id string) (context.Context, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || len(q.open) >= maxQuestions || q.open[id] != nil {
		return nil, false
	}
	if q.open == nil {
		q.open = make(map[string]context.CancelCauseFunc)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	q.open[id] = cancel
	q.all.Add(1)
	return ctx, true
}

func (q *questions) done(id string) {
	q.mu.Lock()
	q.open[id](nil)
	delete(q.open, id)
	q.mu.Unlock()
	q.all.Done()
}

// waiting reports whether any question is open.
func (q *questions) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open) > 0
}

// cancelled handles a notifications/cancelled that the server sent.
func (q *questions) cancelled(params json.RawMessage) {
	id := wire.Member(params, "requestId")
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.open[string(id)]; cancel != nil {
		cancel(errTakenBack)
	}
}

// visit records that this client's user is asked to open a URL. When the server reports later that the user has done so, mcpx knows
// which client to tell.
func (q *questions) visit(elicitation string, client *caller.Client) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if elicitation != "" {
		q.visits.Put(elicitation, client)
	}
}

// visitAll is for a call that the server refuses to execute before the user has opened some URLs (URLElicitationRequiredError). It
// calls visit for each of these URLs. The parameter data is the data of the server's error.
func (q *questions) visitAll(data json.RawMessage, client *caller.Client) {
	var d struct{ Elicitations []json.RawMessage }
	_ = json.Unmarshal(data, &d) // if the data is invalid, the list stays empty
	for _, one := range d.Elicitations {
		q.visit(elicitation(one), client)
	}
}

func (q *questions) end() {
	q.mu.Lock()
	q.ended = true
	for _, cancel := range q.open {
		cancel(transport.ErrGone)
	}
	q.mu.Unlock()
	q.all.Wait()
}

// question passes a request of the server on to the client that it is meant for. The goroutine that reads from the server calls
// question, so another goroutine waits for the client. The waiting goroutine ends when the answer comes, the server cancels the
// question, the call or the session ends, or answerTime has passed. The method close of the session waits for it.
func (s *session) question(m wire.Message, streamID int64) {
	s.spec.OnQuestion()
	client, calls, why := s.asked(streamID, m.Params)
	if s.spec.NoQuestions {
		why = "this server may not ask clients anything"
	}
	if why == "" {
		why = client.Cannot(m.Method, m.Params)
	}
	if why != "" {
		code := int64(wire.MethodNotFound)
		if client != nil && strings.HasPrefix(caller.Lacks(client.Capabilities, m.Method, m.Params), "elicitation.") {
			code = mcp.INVALID_PARAMS // as revision 2025-11-25 says for a mode that the client does not have
		}
		s.answer(m.ID, nil, &wire.RPCError{Code: code, Message: why})
		return
	}
	id, params := string(m.ID), validText(m.Params)
	ctx, ok := s.questions.begin(id)
	if !ok {
		s.answer(m.ID, nil, &wire.RPCError{Code: mcp.INTERNAL_ERROR, Message: "too many questions are open"})
		return
	}
	s.questions.visit(elicitation(params), client)
	s.countAsked(calls, 1)
	go func() {
		defer s.questions.done(id)
		wanted, stop := context.WithTimeout(ctx, answerTime)
		defer stop()
		wanted, cancel := context.WithCancelCause(wanted)
		defer cancel(nil)
		defer during(calls, cancel)()
		result, err := s.put(wanted, client, calls, m.Method, params)
		if context.Cause(wanted) == errCallOver {
			// If the call was cancelled, the server must get the cancellation before this answer.
			delay.Sleep(ctx, cancelTime)
		}
		if ctx.Err() != nil {
			return
		}
		s.answer(json.RawMessage(id), result, err)
	}()
}

// answerProgress returns a func that passes the client's progress notifications about its answer on to the server,
// with the server's token. It returns nil if the server gave no token.
func (s *session) answerProgress(params json.RawMessage) func(json.RawMessage) {
	token := wire.Member(wire.Member(params, "_meta"), "progressToken")
	if token == nil {
		return nil
	}
	return func(progress json.RawMessage) {
		progress = wire.Set(progress, "progressToken", token)
		message := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":`), progress...)
		s.note(flat(append(message, '}')))
	}
}

// asked returns the client that a request of the server is meant for, and the open calls that the request may belong to. If there
// is no such client, reason says why. streamID is the id of the client's request on whose stream the server's request came, or 0.
// If params name a task, and calls wait for its result, asked returns only these calls.
//
// The question is put to the first of the calls, which has the fewest open questions. A modern client gets a question as the answer
// to its call, so a second question to the same call would have to wait until the client has answered the first.
func (s *session) asked(streamID int64, params json.RawMessage) (client *caller.Client, calls []*listener, reason string) {
	owner, task := s.spec.owner(), wire.MemberText(wire.Member(wire.Member(params, "_meta"), caller.RelatedTask), "taskId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if calls = s.callsOf(streamID, task, (*caller.Client).HomeKey); len(calls) == 0 {
		calls = s.callsOf(streamID, "", (*caller.Client).HomeKey)
	}
	switch {
	case len(calls) > 0:
		slices.SortStableFunc(calls, byAsked)
		return calls[0].client, calls, ""
	case owner != nil:
		return owner, nil, ""
	case streamID > 0:
		return nil, nil, "no call is open on the connection that the question came on"
	case len(s.calls.listeners) == 0:
		return nil, nil, "no call is open that could ask a client; session: per_client gives each client a session of its own"
	}
	return nil, nil, "several clients have calls open on this session, and nothing says which of them asks; session: per_client in the configuration of mcpx gives each client a session of its own"
}

// put asks the client the question on behalf of the first of the calls, and returns the answer. If this call ends before the answer
// comes, the question must belong to another of the calls. So put asks again, on behalf of a call that is still open. The caller of
// put must have counted the question with countAsked.
func (s *session) put(
	ctx context.Context, client *caller.Client, calls []*listener, method string, params json.RawMessage,
) (json.RawMessage, error) {
	for {
		result, err := client.Request(ctx, method, params, s.answerProgress(params))
		s.countAsked(calls, -1)
		_, answered := errors.AsType[*wire.RPCError](err)
		if err == nil || answered || ctx.Err() != nil || len(calls) == 0 || !calls[0].over() {
			return result, err
		}
		calls = slices.DeleteFunc(slices.Clone(calls), (*listener).over)
		if len(calls) == 0 {
			return nil, err
		}
		s.mu.Lock()
		slices.SortStableFunc(calls, byAsked)
		s.mu.Unlock()
		client = calls[0].client
		s.countAsked(calls, 1)
	}
}

// byAsked compares two calls by the number of their open questions. The caller holds the lock of the session.
func byAsked(a, b *listener) int { return a.asked - b.asked }

// countAsked adds n to the open questions that were put to the first of the calls.
func (s *session) countAsked(calls []*listener, n int) {
	if len(calls) > 0 {
		s.mu.Lock()
		calls[0].asked += n
		s.mu.Unlock()
	}
}

// answer sends the server the answer to its request: result or, if err is not nil, an error.
func (s *session) answer(id, result json.RawMessage, err error) {
	out := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), ',')
	if err == nil {
		out = append(append(out, `"result":`...), result...)
	} else {
		rpc, ok := errors.AsType[*wire.RPCError](err)
		if !ok {
			rpc = &wire.RPCError{Code: mcp.INTERNAL_ERROR, Message: "the client did not answer: " + err.Error()}
		} else if rpc.NoCode || rpc.OddCode != nil {
			rpc = &wire.RPCError{Code: mcp.INTERNAL_ERROR, Message: rpc.Error(), Data: rpc.Data}
		}
		out = strconv.AppendInt(append(out, `"error":{"code":`...), rpc.Code, 10)
		out = wire.AppendQuoted(append(out, `,"message":`...), rpc.Message)
		if len(rpc.Data) > 0 {
			out = append(append(out, `,"data":`...), rpc.Data...)
		}
		out = append(out, '}')
	}
	s.note(flat(append(out, '}')))
}

// visited handles the server's notification that the user has completed a URL elicitation. It passes the notification on to the
// client that got the URL.
func (s *session) visited(params json.RawMessage) {
	id := elicitation(params)
	q := &s.questions
	var client *caller.Client
	q.mu.Lock()
	client = q.visits.Find(id)
	q.visits.Delete(id)
	q.mu.Unlock()
	if client != nil && client.Notify != nil {
		client.Notify(methodVisited, validText(params))
	}
}

const methodVisited = "notifications/elicitation/complete"

// elicitation returns the id of an elicitation in URL mode; empty for other questions.
func elicitation(params json.RawMessage) string { return wire.MemberText(params, "elicitationId") }
