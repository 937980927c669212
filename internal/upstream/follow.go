package upstream

import (
	"bytes"
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

// topic is a resource of whose changes a session has asked its server to tell, as long as
// somebody follows it. Under the session's lock but for the channels.
type topic struct {
	followers map[*follower]struct{}
	cancel    context.CancelFunc // begins its end
	settled   chan struct{}      // closed once the server has agreed, or refused with err
	err       error
	ended     chan struct{} // closed once the server was told that nobody follows it
}

var errNotTold = errors.New("the server has not agreed to tell of changes of the resource")

type follower struct{ updated func(params json.RawMessage) }

// Follow asks the server to report changes of the resource that r names, and calls r.Subscription.Updated for each; agreed,
// once the server has accepted the request. It returns with ctx, with the end of the session, or with the server's
// error. It waits for a session as Call does. None of the functions may block.
func (u *Upstream) Follow(ctx context.Context, r *request.Request, agreed func()) error {
	if err := u.begin(); err != nil {
		return err
	}
	defer u.finished()
	s, err := u.enter(ctx, &waits{limited: r.Wait > 0, left: r.Wait})
	if err != nil {
		return err
	}
	u.leave() // it is no call
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
			return &request.LostError{Reason: "the server no longer tells of changes"}
		case <-s.link.Life().Done():
			return &request.LostError{Reason: u.spec.reason(s.link.Life().Cause())}
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join adds a follower to the topic of a resource, which the first one makes.
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
		case len(t.followers) == 0: // it is ending
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

// part takes a follower off a topic, which ends with the last one.
func (s *session) part(t *topic, f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(t.followers, f); len(t.followers) == 0 {
		t.cancel()
	}
}

// hold keeps the server telling of changes of a resource until ctx ends.
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
		// An acknowledgement does not name what it does not grant.
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
	// The server has agreed, or may agree later to a request that was given up.
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

// settle says whether the server has agreed to tell of changes, once.
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

// updated passes the change of a resource on to those who follow it, or something that it
// is a part of.
func (s *session) updated(params json.RawMessage) {
	changed := wire.MemberText(params, "uri")
	if changed == "" {
		return
	}
	params = bytes.ToValidUTF8(bytes.Clone(params), []byte("\ufffd"))
	s.tellFollowers(params, func(uri string, _ *topic) bool { return strings.HasPrefix(changed, uri) })
}

// tellFollowers calls the followers of some topics.
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

// acknowledged notes for which resources a subscription was granted. One that was broken
// and is open again may have missed changes.
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
