package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpx/internal/base/wire"
)

// Recorded says in the event of a request what the request is for. It makes the event where there is none, and then ends
// it too.
func Recorded(journal *Journal) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			if r.Event != nil {
				journal.Attempt(r.Event)
				r.Event.reads(r)
				return next(ctx, r)
			}
			r.Event = journal.Begin(r.Method, r.Client)
			journal.Attempt(r.Event)
			r.Event.reads(r)
			result, err := next(ctx, r)
			r.Event.Ended(ctx, err)
			journal.End(r.Event)
			return result, err
		}
	}
}

// Ended says in the event of a message that is no call how it has ended, with the error of [Handler].
func (e *Event) Ended(ctx context.Context, err error) {
	rpc, answered := errors.AsType[*wire.RPCError](err)
	_, over := errors.AsType[*LimitError](err)
	_, unavailable := errors.AsType[*UnavailableError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		e.Outcome = OutcomeCancelled
	case answered:
		e.Code, e.Outcome = int(rpc.Code), fmt.Sprintf("ERROR %d", rpc.Code)
	case over:
		e.Outcome = "RATE_LIMITED"
	case unavailable:
		e.Outcome = "SERVER_UNAVAILABLE"
	default:
		e.Outcome = "EXECUTION_ERROR"
	}
}

// reads takes over what a request that is no call of a tool is for. Of a call the event has what the client wrote.
func (e *Event) reads(r *Request) {
	if e.IsCall() {
		return
	}
	e.Server, e.KnownServer, e.ReadOnly, e.ArgumentBytes = r.To.Name, true, Known(r.Method), len(r.Params)
	e.Item = itemOf(r)
}

// maxItem bounds the item of an event, in bytes: clients choose it.
const maxItem = 300

// itemOf is what the params of a request name.
func itemOf(r *Request) string {
	var item string
	switch {
	case strings.HasPrefix(r.Method, "resources/"):
		item = wire.MemberText(r.Params, "uri")
	case strings.HasPrefix(r.Method, "prompts/"):
		item = wire.MemberText(r.Params, "name")
	case strings.HasPrefix(r.Method, "tasks/"):
		item = wire.MemberText(r.Params, "taskId")
	case r.Method == "completion/complete":
		ref := wire.Member(r.Params, "ref")
		if item = wire.MemberText(ref, "uri"); item == "" {
			item = wire.MemberText(ref, "name")
		}
	}
	return strings.ToValidUTF8(item[:min(len(item), maxItem)], "")
}

// known are the methods of messages to servers that mcpx knows, beside tools/call. None of them changes what a
// person would have to confirm: they read, or belong to a call that was confirmed.
var known = map[string]bool{
	"resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true, "prompts/get": true,
	"completion/complete": true, "tasks/get": true, "tasks/update": true, "tasks/cancel": true, "tasks/result": true,
	"notifications/roots/list_changed": true,
}

// Known reports whether mcpx knows what a message to a server with that method means.
func Known(method string) bool { return method == "tools/call" || known[method] }

// Belongs reports whether no limit of calls is for the request: it belongs to one that was admitted before, as one about a task does,
// the end of a subscription, and its renewal after a loss; its own requests are counted (of the server inside of mcpx); or it
// says only that the client's roots have changed.
func (r *Request) Belongs() bool {
	return strings.HasPrefix(r.Method, "tasks/") || r.Serve != nil || r.Notification && known[r.Method] ||
		r.Method == "resources/unsubscribe" || r.Subscription != nil && r.Subscription.Renewal
}

// Timed says in the event how long the server takes, and how much it sends. What the server inside of mcpx asks others is in
// events of its own.
func Timed(next Handler) Handler {
	return func(ctx context.Context, r *Request) (json.RawMessage, error) {
		if r.Serve != nil {
			return next(ctx, r)
		}
		asked := time.Now()
		if r.Event.Asked.IsZero() {
			r.Event.Asked = asked
		}
		result, err := next(ctx, r)
		r.Event.Upstream += time.Since(asked)
		if err == nil {
			r.Event.ReceivedBytes = len(result)
		}
		return result, err
	}
}
