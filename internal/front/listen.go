package front

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// keepAlive is the time between two keep-alives on a long-lived stream, or while a question is open. Without them, proxies would
// close a connection that is silent for a long time.
const keepAlive = 25 * time.Second

// listen answers subscriptions/listen (SEP-2575): it acknowledges the subscription, then sends changes with the subscription's
// id, and returns the result when ctx ends. If nothing that the client asks for can be granted, it returns the result at once.
func (f *Front) listen(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	var p struct {
		Notifications struct {
			mcp.SubscriptionFilter
			TaskIDs []json.RawMessage // of the tasks extension
		}
	}
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "the params of subscriptions/listen were not understood: " + err.Error()}
	}
	if len(p.Notifications.TaskIDs) > 0 && !r.client.RunsTasks() {
		return nil, needsTasks("params.notifications.taskIds")
	}
	if over := f.options.Admission.OpenSession(r.client.Principal); over != nil {
		return nil, tooMany(over)
	}
	defer f.options.Admission.CloseSession(r.client.Principal)
	changed, stop := f.pendingFor(r.client)
	defer stop()
	granted, shown := p.Notifications.SubscriptionFilter, f.view.Traits()
	granted.ResourcesListChanged = granted.ResourcesListChanged && shown.Resources
	granted.PromptsListChanged = granted.PromptsListChanged && shown.Prompts
	var resources followed
	defer resources.close()
	granted.ResourceSubscriptions = nil
	if shown.Resources {
		granted.ResourceSubscriptions = f.followAll(ctx, r.client, p.Notifications.ResourceSubscriptions, &resources, changed)
	}
	wanted := map[string]bool{
		mcp.MethodNotificationResourceUpdated:      true,
		mcp.MethodNotificationToolsListChanged:     granted.ToolsListChanged,
		mcp.MethodNotificationResourcesListChanged: granted.ResourcesListChanged,
		mcp.MethodNotificationPromptsListChanged:   granted.PromptsListChanged,
	}
	tag := wire.WithMember(nil, mcp.MetaKeySubscriptionID, r.ID)
	r.out.notify(mcp.MethodNotificationSubscriptionsAcknowledged,
		json.RawMessage(`{"_meta":`+string(tag)+`,"notifications":`+string(wire.Encode(granted))+`}`))
	if !granted.IsEmpty() {
		follow(ctx, changed, func(n note) {
			if wanted[n.method] {
				r.out.notify(n.method, request.WithMeta(n.params, mcp.MetaKeySubscriptionID, r.ID))
			}
		}, r.out.alive)
	}
	out = append(out, `{"resultType":"complete","_meta":`...)
	return append(append(out, f.identified(tag)...), '}'), nil
}

// follow calls tell for each pending notification, and alive once in every keepAlive. It returns when ctx ends. Notifications that
// are still pending then stay in notes, for the client's next stream.
func follow(ctx context.Context, notes *pending, tell func(note), alive func()) {
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		select {
		case <-notes.due:
			if ctx.Err() != nil { // select chooses at random if the stream has ended too
				notes.signal()
				return
			}
			for _, n := range notes.take() {
				tell(n)
			}
		case <-quiet.C:
			alive()
		case <-ctx.Done():
			return
		}
	}
}
