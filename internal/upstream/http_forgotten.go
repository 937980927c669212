package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/wire"
)

// refusal is the text of an error that may mean that the server has forgotten
// the session; empty if it cannot. A server should say so with 404; many say 400
// or 401, or answer with a JSON-RPC error.
func refusal(message wire.Message, err error) string {
	status, isStatus := errors.AsType[*statusError](err)
	answer, isAnswer := errors.AsType[*AnswerError](err)
	text := ""
	switch {
	case isStatus:
		text = status.hint
	case isAnswer:
		text = answer.Reason
	case err == nil && message.Error != nil && rpcCode(message.Error) != methodNotFound:
		text = string(message.Error[:min(len(message.Error), 600)])
	}
	lower := strings.ToLower(text)
	if strings.Contains(lower, "session") || strings.Contains(lower, "initializ") {
		return text
	}
	return ""
}

// refusesAll returns with which text a server refuses whatever belongs to a session
// that it has forgotten; empty if it does not. It has refused r with text, which may
// as well be that of a tool: so a ping is asked whether it fares the same and, as
// there are servers without ping, a tools/list after it. refused asks, with an id that
// no request has (those are above 0), and returns the text of the refusal.
func refusesAll(r request, text string, refused func(method string, id int64) string) string {
	switch {
	case r.method != "ping" && refused("ping", -r.id) == "":
		return ""
	case r.method == string(mcp.MethodToolsList):
		return text
	}
	return refused(string(mcp.MethodToolsList), -r.id-1)
}

// forgotten reports whether the server does not know the session any more, and has
// refused r for that, with that text. The link ends with the session, also where r
// was refused in other words and may have been executed.
func (l *httpLink) forgotten(ctx context.Context, r request, text string) bool {
	if l.session.Load() == nil || r.method == "initialize" {
		return false
	}
	if l.cause() != nil {
		refusal := l.refusal.Load()
		return refusal != nil && sameWords(*refusal, text)
	}
	refusal := refusesAll(r, text, func(method string, id int64) string { return l.refusedTo(ctx, method, id) })
	if refusal == "" {
		return false
	}
	l.refusal.Store(&refusal)
	l.fail(fmt.Errorf("%w: %s", errGone, l.spec.clean(refusal, 200)))
	return sameWords(refusal, text)
}

// sameWords compares refusals but for digits: ids and times differ from one to the
// next.
func sameWords(a, b string) bool {
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

// askPatience bounds a request that tells whether a session lives.
const askPatience = 5 * time.Second

// refusedTo sends a request without params, and returns with which text it is
// refused for want of a session; empty if it is not.
func (l *httpLink) refusedTo(ctx context.Context, method string, id int64) string {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	ctx, release := l.bound(ctx)
	defer release()
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
	resp, _, err := l.post(ctx, l.url, message, nil)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	answer, err := (&response{link: l, r: request{id: id, method: method}, giveUp: cancel, asking: true}).read(ctx, resp)
	if errors.Is(err, errGone) {
		return err.Error()
	}
	return refusal(answer, err)
}

// endSession tells a legacy server that the session is over, with the
// configured headers; it is best effort.
func (l *httpLink) endSession() {
	within := time.Second
	if d := time.Duration(l.spec.closeWithin.Load()); d > 0 {
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
