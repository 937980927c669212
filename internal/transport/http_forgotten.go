package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// refusal returns the text of an error that may mean that the server has forgotten the session, or an empty string for other
// errors. A server that has forgotten a session should answer 404, but many answer 400, 401 or a JSON-RPC error.
func refusal(message wire.Message, err error) string {
	status, isStatus := errors.AsType[*StatusError](err)
	answer, isAnswer := errors.AsType[*request.AnswerError](err)
	text := ""
	switch {
	case isStatus:
		text = status.hint
	case isAnswer:
		text = answer.Reason
	case err == nil && message.Error != nil && wire.RPCCode(message.Error) != wire.MethodNotFound:
		text = string(message.Error[:min(len(message.Error), 600)])
	}
	lower := strings.ToLower(text)
	if strings.Contains(lower, "session") || strings.Contains(lower, "initializ") {
		return text
	}
	return ""
}

const toolsList = "tools/list"

// refusesAll tests whether a server has forgotten the session, and therefore refuses every request. The server has refused the
// request r with the text refusal, but perhaps only the tool that r calls has failed. So refusesAll sends a ping and then a
// tools/list, since some servers do not know ping. It sends each with the func send, which returns the text of a refusal, or "".
// The ids of these requests are negative, so they differ from all other ids.
//
// refusesAll returns the text of the last refusal, or "" if the server still accepts requests.
func refusesAll(r Outgoing, refusal string, send func(ask Outgoing) string) string {
	ask := func(method string, id int64) string {
		message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
		return send(Outgoing{ID: id, Method: method, Message: message})
	}
	switch {
	case r.Method != "ping" && ask("ping", -r.ID) == "":
		return ""
	case r.Method == toolsList:
		return refusal
	}
	return ask(toolsList, -r.ID-1)
}

// forgotten reports whether the server refused r because it has forgotten the session. text is the text of the refusal. To find
// out, forgotten sends test requests. If the server refuses them too, the link ends. But if the server refuses the test
// requests with another text, forgotten returns false, because the server may have executed r before it forgot the session. If
// the link has ended already, the refusal that ended it takes the place of the test.
func (l *httpLink) forgotten(ctx context.Context, r Outgoing, text string) bool {
	if l.session.Load() == nil || r.Method == "initialize" {
		return false
	}
	if l.life.Cause() != nil {
		refusal := l.refusal.Load()
		return refusal != nil && SameWords(*refusal, text)
	}
	refusal := refusesAll(r, text, func(ask Outgoing) string { return l.refusedTo(ctx, ask) })
	if refusal == "" {
		return false
	}
	l.refusal.Store(&refusal)
	l.life.Fail(fmt.Errorf("%w: %s", ErrGone, l.dialer.Secrets.Line(refusal, 200)))
	return SameWords(refusal, text)
}

// SameWords reports whether two texts are the same apart from digits, since ids and times differ from one error to
// the next.
func SameWords(a, b string) bool {
	words := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, text)
	}
	return words(a) == words(b)
}

// askPatience bounds a request that tests whether the session still exists.
const askPatience = 5 * time.Second

// refusedTo sends a test request. If the server refuses it because of the session, refusedTo returns the text of
// the refusal, otherwise "".
func (l *httpLink) refusedTo(ctx context.Context, ask Outgoing) string {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	ctx, release := l.bound(ctx)
	defer release()
	resp, _, err := l.post(ctx, l.url, ask.Message, nil)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	answer, err := (&response{link: l, r: ask, giveUp: cancel, asking: true}).read(ctx, resp)
	if errors.Is(err, ErrGone) {
		return err.Error()
	}
	return refusal(answer, err)
}

// endSession asks a legacy server to end the session. Errors are ignored.
func (l *httpLink) endSession() {
	within := time.Second
	if d := time.Duration(l.dialer.closeWithin.Load()); d > 0 {
		within = min(within, d/2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.url, nil)
	if err != nil {
		return
	}
	l.setHeaders(req, nil)
	if resp, err := l.client.Do(req); err == nil {
		resp.Body.Close()
	}
}
