package front

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/resources"
)

// maxFollowed bounds the resources that one client follows.
const maxFollowed = 1000

// followed are the resources that a client follows, by URI. What it hears of them goes to
// its news. The zero value follows nothing.
type followed struct {
	mu    sync.Mutex
	ended bool
	end   map[string]context.CancelFunc
	all   sync.WaitGroup
}

// begin follows a resource, in a goroutine that ends with [followed.stop], with
// [followed.close], or with the error of the server. The channel holds the first outcome:
// nil once the server has agreed. It is nil if the resource is followed already.
func (o *followed) begin(uri string, topic *resources.Topic, news *pending) (agreed chan error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || o.end[uri] != nil {
		return nil
	}
	if o.end == nil {
		o.end = make(map[string]context.CancelFunc)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.end[uri] = cancel
	agreed = make(chan error, 1)
	o.all.Go(func() {
		err := topic.Follow(ctx, func() { agreed <- nil }, func(params json.RawMessage) {
			news.add(note{method: mcp.MethodNotificationResourceUpdated, of: wire.MemberText(params, "uri"), params: params})
		})
		if ctx.Err() == nil {
			o.stop(uri)
		}
		select {
		case agreed <- err:
		default: // the first outcome is in it still
		}
	})
	return agreed
}

// full reports whether the client follows as much as it may.
func (o *followed) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.end) >= maxFollowed
}

// has reports whether the client follows a resource.
func (o *followed) has(uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end[uri] != nil
}

// stop ends the following of a resource.
func (o *followed) stop(uri string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if end := o.end[uri]; end != nil {
		end()
		delete(o.end, uri)
	}
}

// close ends all, and waits for that.
func (o *followed) close() {
	o.mu.Lock()
	o.ended = true
	for _, end := range o.end {
		end()
	}
	o.end = nil
	o.mu.Unlock()
	o.all.Wait()
}

// subscribe answers resources/subscribe, when the server of the resource has agreed.
func (f *Front) subscribe(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	uri, _ := wire.Text(r.uri)
	topic, err := f.view.Topic(ctx, r.from(), uri, false)
	if err == nil && r.session.followed.full() {
		err = &resources.ParamsError{Message: "too many subscriptions; unsubscribe from others first"}
	}
	if err != nil {
		return nil, f.besideError(r, err)
	}
	if agreed := r.session.followed.begin(uri, topic, r.session.pending); agreed != nil {
		select {
		case err = <-agreed:
			if errors.Is(err, context.Canceled) { // by followed.stop, or followed.close
				return nil, &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: the client unsubscribed before the server had agreed"}
			}
		case <-ctx.Done():
			r.session.followed.stop(uri)
			<-agreed // it ends now, and has no more to say in the event of the request
			return nil, &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: " + context.Cause(ctx).Error()}
		}
	}
	if err != nil {
		return nil, f.besideError(r, err)
	}
	return append(out, "{}"...), nil
}

// unsubscribe answers resources/unsubscribe.
func (f *Front) unsubscribe(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	uri, _ := wire.Text(r.uri)
	if r.session.followed.has(uri) {
		_, err := f.view.Send(ctx, &request.Request{From: r.from(), Method: r.Method, Params: r.Params})
		if _, gone := errors.AsType[*catalog.URIError](err); err != nil && !gone {
			return nil, f.besideError(r, err)
		}
		r.session.followed.stop(uri)
	}
	return append(out, "{}"...), nil
}

// followAll follows the resources of a subscription, as far as they can be followed, and
// returns their URIs.
func (f *Front) followAll(ctx context.Context, client *caller.Client, uris []string, o *followed, news *pending) (granted []string) {
	for _, uri := range uris {
		if o.full() {
			break
		}
		topic, err := f.view.Topic(ctx, request.From{Client: client}, uri, true)
		if err != nil {
			continue
		}
		if o.begin(uri, topic, news) != nil {
			granted = append(granted, uri)
		}
	}
	return granted
}
