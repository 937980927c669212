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

// topic is a resource whose changes the server reports, as long as it has followers. The session's lock guards its
// fields, except for the channels.
type topic struct {
	followers map[*follower]struct{}
	cancel    context.CancelFunc // ends the subscription
	settled   chan struct{}      // closed once the server has agreed, or refused with err
	err       error
	ended     chan struct{} // closed once the subscription has ended
}

var errNotTold = errors.New("the server has not agreed to report changes of the resource")

type follower struct{ updated func(params json.RawMessage) }

// Follow subscribes to the resource that r names and calls r.Subscription.Updated for each change. It calls agreed once
// the server has accepted the subscription. It waits for a session as Call does, and returns when ctx or the session
// ends, or with the server's error. The callbacks must not block.
func (u *Upstream) Follow(ctx context.Context, r *request.Request, agreed func()) error {
	if err := u.begin(); err != nil {
		return err
	}
	defer u.finished()
	s, err := u.enter(ctx, &waits{limited: r.Wait > 0, left: r.Wait})
	if err != nil {
		return err
	}
	u.leave() // a subscription does not count as an open call
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

// join adds a follower to the topic of a resource. The first follower opens the topic.
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
			s.changes.streams.Go(func() { s.hold(topicCtx, uri, t) }) // ends with its last follower, or with close
		case len(t.followers) == 0: // the topic is ending: wait for that, then open it again
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

// part removes a follower. The topic ends with the last one.
func (s *session) part(t *topic, f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(t.followers, f); len(t.followers) == 0 {
		t.cancel()
	}
}

// hold keeps the subscription of a resource open until ctx ends.
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
		// The server does not name the resources that it refuses: silence is a refusal.
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
	// The server has agreed, or may still agree after mcpx gave up waiting: it must be told to unsubscribe.
	if err == nil {
		<-ctx.Done()
	}
	if s.changes.ctx.Err() != nil {
		return // the session ends, and the subscription with it
	}
	bounded, cancel = context.WithTimeout(s.notes.ctx, noteTime)
	defer cancel()
	if _, err := s.do(bounded, string(mcp.MethodResourcesUnsubscribe), params); err != nil {
		s.spec.Logger.Debug("unsubscribing", "err", s.spec.Secrets.Line(err.Error(), 300))
	}
}

// settle records the server's answer to the subscription; only the first call has an effect.
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

// updated passes the change of a resource on to its followers, and to those who follow a URI that it begins with.
func (s *session) updated(params json.RawMessage) {
	changed := wire.MemberText(params, "uri")
	if changed == "" {
		return
	}
	s.tellFollowers(validText(params), func(uri string, _ *topic) bool { return strings.HasPrefix(changed, uri) })
}

// tellFollowers calls the followers of the topics that which selects.
func (s *session) tellFollowers(params json.RawMessage, which func(uri string, t *topic) bool) {
	var all []*follower
	s.mu.Lock()
	for uri, t := range s.topics {
		if which(uri, t) {
			all = slices.AppendSeq(all, maps.Keys(t.followers))
		}
	}
	s.mu.Unlock()
	for _, f := range all {
		f.updated(params)
	}
}

// acknowledged handles the server's acknowledgement for these resources. If a topic was acknowledged before, its stream
// broke and was opened again: changes may have been missed, so its followers are notified.
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
