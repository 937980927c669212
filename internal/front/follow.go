package front

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/resources"
)

// maxFollowed is the highest number of resources that one session, or one subscriptions/listen, may subscribe to. Concurrent
// requests may exceed it a little, because each checks the number before it subscribes.
const maxFollowed = 1000

// maxFollowedOf is the highest number of resources that the sessions and requests of one principal may subscribe to together. It
// protects the memory of mcpx. The limits for calls do not protect it: if they refuse to send a subscription to the server, the
// goroutine of the subscription goes on and tries again later.
const maxFollowedOf = 10_000

// following counts the subscriptions of each principal. The zero value is ready.
type following struct {
	mu sync.Mutex
	of map[string]int
}

// add adds n, which may be negative, to the number of subscriptions of a principal.
func (c *following) add(who string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	if c.of[who] += n; c.of[who] == 0 {
		delete(c.of, who)
	}
}

// count returns the number of subscriptions of a principal. It returns 0 for a client without a principal: without
// authentication, the limit for each principal does not apply.
func (c *following) count(who string) int {
	if who == "" {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[who]
}

// followed holds the resources that a client subscribes to, by URI. Updates go to the client's pending
// notifications. The zero value is ready.
type followed struct {
	again bool // the client may have had these subscriptions before, so followAll reports each resource once as possibly changed
	mu    sync.Mutex
	ended bool
	end   map[string]context.CancelFunc
	all   sync.WaitGroup
}

// followOne subscribes to a resource in a goroutine, which adds the updates to the parameter notes. The goroutine ends with
// [followed.stop], with [followed.close], or if the first subscription fails. The returned channel gets one value: nil once the
// server has accepted the subscription, otherwise the error. followOne returns a nil channel if the client already subscribes to
// the resource, or after close. As long as the goroutine runs, f.following counts the subscription for the client's principal.
func (f *Front) followOne(o *followed, uri string, topic *resources.Topic, client *caller.Client, notes *pending) (agreed chan error) {
	who := client.On().Key()
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
	f.following.add(who, 1)
	o.all.Go(func() {
		defer f.following.add(who, -1)
		err := topic.Follow(ctx, func() { agreed <- nil }, func(params json.RawMessage) {
			notes.add(note{method: mcp.MethodNotificationResourceUpdated, uri: wire.MemberText(params, "uri"), params: params})
		})
		if ctx.Err() == nil {
			o.stop(uri)
		}
		select {
		case agreed <- err:
		default: // the channel has its value already
		}
	})
	return agreed
}

// full reports whether the client may not subscribe to a resource: o has maxFollowed subscriptions or more, or the client's
// principal has maxFollowedOf or more. It returns false if the client already subscribes to the resource.
func (f *Front) full(o *followed, client *caller.Client, uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end[uri] == nil && (len(o.end) >= maxFollowed || f.following.count(client.On().Key()) >= maxFollowedOf)
}

// has reports whether this process has the client's subscription to a resource, even if the server has not accepted it yet. The
// record of a session over HTTP may name more resources, to which only another process subscribes.
func (o *followed) has(uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end[uri] != nil
}

// stop ends the subscription to a resource.
func (o *followed) stop(uri string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if end := o.end[uri]; end != nil {
		end()
		delete(o.end, uri)
	}
}

// close ends all subscriptions and waits for their goroutines.
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

// subscribe answers resources/subscribe once the server of the resource has accepted or refused the subscription. If the client
// already subscribes to the resource, it answers at once.
func (f *Front) subscribe(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	uri, _ := wire.Text(r.uri)
	topic, err := f.view.Topic(ctx, r.from(), uri, false)
	if err == nil && f.full(&r.session.followed, r.client, uri) {
		err = &resources.ParamsError{Message: "too many subscriptions; unsubscribe from others first"}
	}
	if err != nil {
		return nil, f.resourceError(r, err)
	}
	if agreed := f.followOne(&r.session.followed, uri, topic, r.client, r.session.pending); agreed != nil {
		select {
		case err = <-agreed:
			if errors.Is(err, context.Canceled) { // caused by followed.stop or followed.close
				return nil, &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: the client unsubscribed before the server had agreed"}
			}
		case <-ctx.Done():
			r.session.followed.stop(uri)
			<-agreed // until then, the goroutine of the subscription may write to the event of r
			return nil, cancelled(ctx)
		}
	}
	if err != nil {
		return nil, f.resourceError(r, err)
	}
	if why := f.remember(ctx, r.session, uri, true); why != nil {
		r.session.followed.stop(uri)
		return nil, why
	}
	return append(out, "{}"...), nil
}

// remember stores in the record of a session over HTTP whether the client subscribes to a resource. A process that continues the
// session later reads the record. The result is the error for the client if the record cannot be changed, otherwise nil.
func (f *Front) remember(ctx context.Context, s *session, uri string, follows bool) *rpcError {
	if s.id == "" || slices.Contains(s.record.Load().Followed, uri) == follows {
		return nil
	}
	err := f.change(ctx, s, func(record *Session) {
		others := slices.DeleteFunc(slices.Clone(record.Followed), func(one string) bool { return one == uri })
		if follows {
			others = append(others, uri)
		}
		record.Followed = others
	})
	if err != nil {
		_, why := refused(err)
		return why
	}
	// The session may have its GET stream at another replica. Only that replica can send the updates, so it must subscribe too.
	if peers := f.options.Peers; peers != nil && follows && s.outside() == nil {
		peers.Everyone(f.name, s.id, notification(toldFollowed, wire.WithMember(nil, "uri", wire.AppendQuoted(nil, uri))))
	}
	return nil
}

// followAgain subscribes to the resources in the record of s. Like followAll, it skips some of them, such as those to which s
// already subscribes.
func (f *Front) followAgain(ctx context.Context, s *session) {
	f.followAll(ctx, s.client.Load(), s.record.Load().Followed, &s.followed, s.pending)
}

// unsubscribe answers resources/unsubscribe. If the request to the server fails, the client stays subscribed. But if mcpx does not
// find the resource any more, the subscription ends all the same.
func (f *Front) unsubscribe(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	uri, _ := wire.Text(r.uri)
	if r.session.followed.has(uri) {
		_, err := f.view.Send(ctx, &request.Request{From: r.from(), Method: r.Method, Params: r.Params})
		if _, gone := errors.AsType[*catalog.URIError](err); err != nil && !gone {
			return nil, f.resourceError(r, err)
		}
		r.session.followed.stop(uri)
	}
	if why := f.remember(ctx, r.session, uri, false); why != nil {
		return nil, why
	}
	return append(out, "{}"...), nil
}

// followAll subscribes to the resources in uris, and returns the URIs of the new subscriptions. It skips unknown resources,
// resources whose server reports no changes, and resources to which the client already subscribes. It ignores the URIs after the
// first maxFollowed, and stops as soon as the client has too many subscriptions (see full) or ctx ends.
func (f *Front) followAll(ctx context.Context, client *caller.Client, uris []string, o *followed, notes *pending) (granted []string) {
	for i, uri := range uris {
		if i >= maxFollowed || ctx.Err() != nil || f.full(o, client, uri) {
			break
		}
		topic, err := f.view.Topic(ctx, request.From{Client: client}, uri, true)
		if err != nil {
			continue
		}
		topic.Again = o.again
		if f.followOne(o, uri, topic, client, notes) != nil {
			granted = append(granted, uri)
		}
	}
	return granted
}
