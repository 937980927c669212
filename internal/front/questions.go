package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
)

// maxQuestions is the highest number of open questions in one legacy session of this process.
const maxQuestions = 100

// errSessionOver ends the questions of a session that has ended.
var errSessionOver = errors.New("the client's session has ended")

// questions are requests that mcpx has sent to a legacy client and that are not answered yet. The method end ends them. The zero
// value is ready.
type questions struct {
	replica string // the id of this replica, which the ids of questions contain; empty without Peers

	mu    sync.Mutex
	last  int64
	open  map[string]openQuestion // by id
	ended bool                    // no more questions can be asked
}

type openQuestion struct {
	answer   chan *message // has a buffer of one; gets nil if the session ends
	progress func(params json.RawMessage)
}

// ask sends a request to the client through the first sender that accepts it, and waits for the result. If ctx
// ends first, it sends the client a cancellation. progress, if not nil, gets the client's progress notifications.
func (q *questions) ask(
	ctx context.Context, senders []sender, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	id, answer, err := q.begin(progress)
	if err != nil {
		return nil, err
	}
	defer q.done(id)
	if progress != nil { // mcpx sends its own token, since the server's token may not be unique at this client
		params = wire.Edit(params, "_meta", func(meta json.RawMessage) json.RawMessage {
			return wire.Set(meta, "progressToken", json.RawMessage(id))
		})
	}
	asked := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s`, id, notification(method, params)[len(`{"jsonrpc":"2.0",`):])
	asked = wire.OneLine(asked)
	send := func(message []byte) int {
		return slices.IndexFunc(senders, func(o sender) bool { return o != nil && o.send(message) })
	}
	at := send(asked)
	if at < 0 {
		return nil, errors.New("it has no stream open on which it could be asked")
	}
	out := senders[at]
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		select {
		case m := <-answer:
			if m == nil {
				return nil, errSessionOver
			}
			return m.answer()
		case <-quiet.C:
			out.alive()
		case <-ctx.Done():
			reason := wire.AppendQuoted(nil, context.Cause(ctx).Error())
			// The stream on which the question went may have ended with its call.
			send(notification("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%s,"reason":%s}`, id, reason)))
			return nil, ctx.Err()
		}
	}
}

// begin makes a new question: its id, and the channel that gets its answer. The caller must call done with the id.
func (q *questions) begin(progress func(json.RawMessage)) (id string, answer <-chan *message, err error) {
	asks := openQuestion{make(chan *message, 1), progress}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
		return "", nil, errSessionOver
	case len(q.open) >= maxQuestions:
		return "", nil, errors.New("too many questions to the client are open")
	case q.open == nil:
		q.open = make(map[string]openQuestion)
	}
	q.last++
	id = strconv.FormatInt(q.last, 10)
	if q.replica != "" {
		id = `"` + questionID + q.replica + "-" + id + `"`
	}
	q.open[id] = asks
	return id, asks.answer, nil
}

func (q *questions) done(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
}

// end ends the open questions, and refuses later ones. Otherwise a call that goes on in the background after its client has got an
// answer could wait for a client that is gone.
func (q *questions) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for _, asks := range q.open {
		asks.answer <- nil
	}
	q.open = nil
}

// answered passes a client's response on to the question that it answers. A late response is dropped.
func (q *questions) answered(m *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := questionKey(m.ID)
	if asks, ok := q.open[id]; ok {
		delete(q.open, id)
		asks.answer <- m
	}
}

// questionKey returns the id of a question as mcpx has written it. Some clients return it in another form.
func questionKey(id json.RawMessage) string {
	if number, ok := wire.IntID(id); ok {
		return strconv.FormatInt(number, 10)
	}
	return string(id)
}

// spoilt handles a message that is refused. If it can only be the answer to an open question, because it has no method and the id of
// the question, spoilt fails the question and returns true.
func (q *questions) spoilt(m *message) bool {
	q.mu.Lock()
	_, open := q.open[questionKey(m.ID)]
	q.mu.Unlock()
	if open = open && m.Method == ""; open {
		why := m.refusal.message
		if !m.IsResponse() {
			why = "it has neither result nor error"
		}
		m.Error = wire.Encode(map[string]any{"code": mcp.INTERNAL_ERROR, "message": "the client's answer is invalid: " + why})
		q.answered(m)
	}
	return open
}

// progressed passes a client's progress notification on to the question that it is about.
func (q *questions) progressed(m *message) {
	token := wire.Member(m.Params, "progressToken")
	q.mu.Lock()
	progress := q.open[questionKey(token)].progress
	q.mu.Unlock()
	if progress != nil {
		progress(m.Params)
	}
}

// answer returns the result of a response, or its error as a *wire.RPCError.
func (m *message) answer() (json.RawMessage, error) {
	if m.Error == nil {
		return m.Result, nil
	}
	return nil, wire.ReadRPCError(m.Error)
}
