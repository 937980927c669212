package front

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/wire"
)

// keepAlive is the longest silence on a stream that waits for events: proxies close
// connections that are silent for longer.
const keepAlive = 25 * time.Second

// listen answers subscriptions/listen (SEP-2575). It acknowledges the subscription,
// announces changes under the subscription's id, and returns the result when ctx
// ends.
func (f *Front) listen(ctx context.Context, r *request, out []byte) ([]byte, *rpcError) {
	var p struct{ Notifications mcp.SubscriptionFilter }
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "the params of subscriptions/listen were not understood: " + err.Error()}
	}
	changed := f.changes.subscribe()
	defer f.changes.unsubscribe(changed)
	tag := append(append([]byte(`{`), wire.Encode(mcp.MetaKeySubscriptionID)...), ':')
	tag = append(append(tag, r.ID...), '}')
	granted := "{}" // mcpx has only one of the kinds of notifications
	if p.Notifications.ToolsListChanged {
		granted = `{"toolsListChanged":true}`
	}
	r.out.notify(mcp.MethodNotificationSubscriptionsAcknowledged,
		json.RawMessage(`{"_meta":`+string(tag)+`,"notifications":`+granted+`}`))
	if p.Notifications.ToolsListChanged {
		params := json.RawMessage(`{"_meta":` + string(tag) + `}`)
		follow(ctx, changed, func() { r.out.notify(mcp.MethodNotificationToolsListChanged, params) }, r.out.alive)
	}
	out = append(out, `{"resultType":"complete","_meta":`...)
	return append(append(out, f.identified(tag)...), '}'), nil
}

// follow calls announce for each change until ctx ends, and alive at intervals.
func follow(ctx context.Context, changed <-chan struct{}, announce, alive func()) {
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		select {
		case <-changed:
			announce()
		case <-quiet.C:
			alive()
		case <-ctx.Done():
			return
		}
	}
}
