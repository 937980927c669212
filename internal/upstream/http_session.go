package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/wire"
)

// refusal is the text of an error that may mean that the server has forgotten
// the session; empty if it cannot. A server should say so with 404; many say 400
// or 401, or answer with a JSON-RPC error.
func refusal(message wire.Message, err error) string {
	var status *statusError
	var answer *AnswerError
	text := ""
	switch {
	case errors.As(err, &status):
		text = status.hint
	case errors.As(err, &answer):
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

// forgotten reports whether the server does not know the session any more, after
// it has refused r with that text. As the text may as well be that of a tool, a
// ping of the session is asked whether it fares the same. If so, the link ends.
func (l *httpLink) forgotten(ctx context.Context, r request, text string) bool {
	if l.session.Load() == nil || r.method == "initialize" {
		return false
	}
	select {
	case <-l.ended:
		return errors.Is(l.cause(), errGone)
	default:
	}
	if r.method != "ping" && !l.pingRefused(ctx, r.id) {
		return false
	}
	l.fail(fmt.Errorf("%w: %s", errGone, l.spec.clean(text, 200)))
	return true
}

// pingPatience bounds the ping that tells whether a session lives.
const pingPatience = 5 * time.Second

// pingRefused sends a ping after the request id was refused.
func (l *httpLink) pingRefused(ctx context.Context, id int64) bool {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	ctx, release := l.bound(ctx)
	defer release()
	// Another id than any request has.
	message := []byte(`{"jsonrpc":"2.0","id":"ping/` + strconv.FormatInt(id, 10) + `","method":"ping"}`)
	resp, _, err := l.post(ctx, l.url, message, nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	answer, err := (&reply{link: l, r: request{id: -1, method: "ping"}, giveUp: cancel}).read(ctx, resp)
	return errors.Is(err, errGone) || refusal(answer, err) != ""
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
