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

// Recorded fills in the event of the request. If the request has no event, Recorded makes one, and ends it after the request.
func Recorded(journal *Journal) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			own := r.Event == nil
			if own {
				r.Event = journal.Begin(r.Method, r.Client)
			}
			journal.Attempt(r.Event)
			r.Event.describe(r)
			result, err := next(ctx, r)
			if own {
				r.Event.Ended(ctx, err)
				journal.End(r.Event)
			}
			return result, err
		}
	}
}

// Ended sets the outcome of an event from the error that the [Handler] has returned. Without an error it sets nothing. It is not
// used for events of tools/call, whose outcomes also depend on the results.
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

// describe copies the target of a request into the event. For a tools/call it does nothing: the executor has already done it, with
// the names that the client used.
func (e *Event) describe(r *Request) {
	if e.IsCall() {
		return
	}
	e.Server, e.KnownServer, e.ReadOnly, e.ArgumentBytes = r.To.Name, true, Known(r.Method), len(r.Params)
	e.Item = itemOf(r)
}

// maxItem is the maximum length of the item of an event, in bytes. It has a bound because clients choose it.
const maxItem = 300

// itemOf returns the URI, name or id in the params of a request; see [Target.Item].
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

// known has those methods that clients send to servers and that mcpx knows, except tools/call. None of them needs the user's
// confirmation: they only read or follow data, tell the server of new roots, or belong to a call that was confirmed.
var known = map[string]bool{
	"resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true, "prompts/get": true,
	"completion/complete": true, "tasks/get": true, "tasks/update": true, "tasks/cancel": true, "tasks/result": true,
	"notifications/roots/list_changed": true,
}

// Known reports whether mcpx knows a method that clients send to servers.
func Known(method string) bool { return method == "tools/call" || known[method] }

// Belongs reports whether a request does not count towards the limits of calls. There are three cases. The request may belong to an
// earlier one that was counted: a message about a task, or the end or the renewal of a subscription. It may make requests that
// count themselves (ChargeNone). Or it only announces that the client's roots have changed.
func (r *Request) Belongs() bool {
	return strings.HasPrefix(r.Method, "tasks/") || r.Serve != nil && r.Charge == ChargeNone || r.Notification && known[r.Method] ||
		r.Method == "resources/unsubscribe" || r.Subscription != nil && r.Subscription.Renewal
}

// Timed records in the event how long the server takes and how much it sends. It skips requests to the built-in server, because
// each request that this server makes has an event of its own.
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
