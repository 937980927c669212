package front

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/wire"
)

// listeners are the open subscriptions of the modern era (subscriptions/listen,
// SEP-2575), over both transports. mcp-go knows a subscription by the id that it
// was given, which over stdio is not the client's, and drops its result at the
// end over HTTP. The zero value is ready.
type listeners struct {
	mu   sync.Mutex
	open map[chan struct{}]struct{}
}

// add returns a channel that has a value when the tools have changed: one,
// however often they have. remove must follow.
func (l *listeners) add() chan struct{} {
	changed := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[chan struct{}]struct{})
	}
	l.open[changed] = struct{}{}
	return changed
}

func (l *listeners) remove(changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, changed)
}

func (l *listeners) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for changed := range l.open {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// listenRequest is a subscriptions/listen of which the envelope was read.
type listenRequest struct {
	requestMeta
	tools bool // notifications/tools/list_changed is asked for; mcpx has no other
}

// readListen reads its params; ok is false where mcp-go shall say what is wrong
// with them.
func readListen(params json.RawMessage) (r listenRequest, ok bool) {
	var meta json.RawMessage
	var filter mcp.SubscriptionFilter
	if len(params) == 0 {
		return r, false
	}
	ok = true
	err := wire.Fields(params, func(key string, value []byte) bool {
		switch key {
		case "notifications":
			ok = json.Unmarshal(value, &filter) == nil
		case "_meta":
			meta = value
		}
		return true
	})
	if err != nil || !ok {
		return r, false
	}
	r.tools = filter.ToolsListChanged
	r.requestMeta, ok = readMeta(meta)
	return r, ok && r.modern() && r.served()
}

// listen serves a subscription until ctx ends: it acknowledges it first, then
// tells of changes, each under the subscription's id; alive, which may be nil, is
// called when nothing was sent for a while. It returns the result, for a client
// that is still there.
func (f *Front) listen(ctx context.Context, id json.RawMessage, r listenRequest, send func(message []byte), alive func()) json.RawMessage {
	changed := f.listeners.add()
	defer f.listeners.remove(changed)
	tag := append(append([]byte(`{`), wire.Encode(mcp.MetaKeySubscriptionID)...), ':')
	tag = append(append(tag, id...), '}')
	granted := "{}"
	if r.tools {
		granted = `{"toolsListChanged":true}`
	}
	send(notification(mcp.MethodNotificationSubscriptionsAcknowledged,
		json.RawMessage(`{"_meta":`+string(tag)+`,"notifications":`+granted+`}`)))
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for r.tools {
		select {
		case <-changed:
			send(notification(mcp.MethodNotificationToolsListChanged, json.RawMessage(`{"_meta":`+string(tag)+`}`)))
		case <-quiet.C:
			if alive != nil {
				alive()
			}
		case <-ctx.Done():
			r.tools = false
		}
	}
	return json.RawMessage(`{"resultType":"complete","_meta":` + string(f.identified(tag)) + `}`)
}
