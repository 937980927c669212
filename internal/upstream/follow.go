package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// topic is the subscription to one resource. All calls of Follow for that resource share the subscription, and each
// call has a follower. The session's lock guards the fields, except for the channels.
type topic struct {
	followers map[*follower]struct{}
	cancel    context.CancelFunc // ends the subscription
	settled   chan struct{}      // closed once the server has accepted the subscription, or refused it (then err is set)
	err       error
	ended     chan struct{} // closed once the subscription has ended
}

var errNotTold = errors.New("the server has not agreed to report changes of the resource")

type follower struct{ updated func(params json.RawMessage) }

// Follow subscribes to the resource that r names and calls r.Subscription.Updated for each change. It calls agreed once the server
// has accepted the subscription. It waits for a session and for the concurrency limits as Call does, but ignores r.Starting. It
// returns an error in any case: when the server refuses the subscription, when ctx, the session or the subscription ends, or when
// the upstream is stopped. The callbacks must not block.
func (u *Upstream) Follow(ctx context.Context, r *request.Request, agreed func()) error {
	if err := u.begin(); err != nil {
		return err
	}
	defer u.finished()
	w := &waits{owner: r.Client.On().Key(), limited: r.Wait > 0, left: r.Wait}
	s, err := u.enter(ctx, w)
	if err != nil {
		return err
	}
	u.leave(w) // subscriptions do not count towards the concurrency limits
	f := &follower{r.Subscription.Updated}
	t, err := s.join(ctx, wire.MemberText(r.Params, "uri"), f)
	if err != nil {
		return err
	}
	defer s.part(t, f)
	settled := t.settled
	for {
		u.mu.Lock()
		changed, stopped := u.changed, u.stopped
		u.mu.Unlock()
		if stopped {
			return stoppedError()
		}
		select {
		case <-settled:
			if t.err != nil {
				return t.err
			}
			agreed()
			settled = nil
		case <-t.ended:
			if t.err != nil {
				return t.err
			}
			return &request.LostError{Reason: "the server no longer reports changes"}
		case <-s.link.Life().Done():
			return &request.LostError{Reason: u.spec.reason(s.link.Life().Cause())}
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join adds a follower to the topic of a resource. If it is the first follower, join subscribes to the resource.
func (s *session) join(ctx context.Context, uri string, f *follower) (*topic, error) {
	for {
		s.mu.Lock()
		t := s.topics[uri]
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, &request.LostError{Reason: "the session has ended"}
		case t == nil:
			topicCtx, cancel := context.WithCancel(s.changes.ctx)
			t = &topic{followers: make(map[*follower]struct{}), cancel: cancel, settled: make(chan struct{}), ended: make(chan struct{})}
			s.topics[uri] = t
			// the goroutine ends with the last follower, or when the session closes
			s.changes.streams.Go(func() { s.hold(topicCtx, uri, t) })
		case len(t.followers) == 0: // this subscription is about to end: wait for that, then subscribe again
			s.mu.Unlock()
			select {
			case <-t.ended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			continue
		}
		t.followers[f] = struct{}{}
		s.mu.Unlock()
		return t, nil
	}
}

// part removes a follower from a topic. When the last follower is removed, the subscription ends.
func (s *session) part(t *topic, f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(t.followers, f); len(t.followers) == 0 {
		t.cancel()
	}
}

// hold subscribes to a resource, and keeps the subscription open until ctx ends. It returns earlier if the server refuses
// or ends the subscription.
func (s *session) hold(ctx context.Context, uri string, t *topic) {
	defer func() {
		s.settle(t, errNotTold)
		s.mu.Lock()
		delete(s.topics, uri)
		s.mu.Unlock()
		t.cancel()
		close(t.ended)
	}()
	if s.Modern {
		// The protocol has no answer by which a server refuses one resource. So the subscription counts as refused if
		// no acknowledgement comes in time.
		late := time.AfterFunc(s.spec.Timeouts.Connect, func() { s.settle(t, errNotTold) })
		defer late.Stop()
		s.keepListening(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(err error) { s.settle(t, err) })
		return
	}
	params := wire.Encode(map[string]string{"uri": uri})
	bounded, cancel := context.WithTimeout(ctx, s.spec.Timeouts.Connect)
	_, err := s.do(bounded, string(mcp.MethodResourcesSubscribe), params)
	unanswered := bounded.Err() != nil
	cancel()
	s.settle(t, err)
	if err != nil && !unanswered {
		return
	}
	// The server has accepted the subscription, or may still accept it after mcpx gave up waiting. In both cases
	// mcpx must unsubscribe.
	if err == nil {
		<-ctx.Done()
	}
	if s.changes.ctx.Err() != nil {
		return // the session ends, and with it the subscription
	}
	bounded, cancel = context.WithTimeout(s.notes.ctx, noteTime)
	defer cancel()
	if _, err := s.do(bounded, string(mcp.MethodResourcesUnsubscribe), params); err != nil {
		s.spec.Logger.Debug("unsubscribing", "err", s.spec.Secrets.Line(err.Error(), 300))
	}
}

// settle records the server's answer to the subscription: err is nil if the server has accepted it. Only the first call has an
// effect.
func (s *session) settle(t *topic, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-t.settled:
	default:
		t.err = err
		close(t.settled)
	}
}

// updated passes the notification that a resource has changed to the followers of its URI, and to the followers of each URI that is
// a prefix of it. It removes the subscription id from the notification, because only mcpx and the server know that id.
func (s *session) updated(params json.RawMessage) {
	changed := wire.MemberText(params, "uri")
	if changed == "" {
		return
	}
	params = wire.Edit(validText(params), "_meta", func(meta json.RawMessage) json.RawMessage {
		return wire.Without(meta, mcp.MetaKeySubscriptionID)
	})
	s.tellFollowers(params, func(uri string, _ *topic) bool { return strings.HasPrefix(changed, uri) })
}

// tellFollowers passes params to all followers of a topic, for each topic that satisfies the func matches.
func (s *session) tellFollowers(params json.RawMessage, matches func(uri string, t *topic) bool) {
	var all []*follower
	s.mu.Lock()
	for uri, t := range s.topics {
		if matches(uri, t) {
			all = slices.AppendSeq(all, maps.Keys(t.followers))
		}
	}
	s.mu.Unlock()
	for _, f := range all {
		f.updated(params)
	}
}

// acknowledged handles the server's acknowledgement of the subscriptions to these resources. A second acknowledgement
// for the same resource means that the stream broke and was opened again. Changes may have been missed meanwhile, so
// the followers of that resource are notified.
func (s *session) acknowledged(uris []string) {
	for _, uri := range uris {
		s.mu.Lock()
		t := s.topics[uri]
		s.mu.Unlock()
		if t == nil {
			continue
		}
		select {
		case <-t.settled:
			s.tellFollowers(wire.Encode(map[string]string{"uri": uri}), func(_ string, one *topic) bool { return one == t })
		default:
			s.settle(t, nil)
		}
	}
}
