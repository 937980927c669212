package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// handshake finds the era: server/discover first and, where that is refused or
// not answered within the probe's bound, initialize. A slow starter gets both
// and may still answer the first.
func (s *session) handshake(ctx context.Context) error {
	if s.spec.Legacy || s.spec.Type == SSE {
		return s.initialize(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	discovered := make(chan error, 1)
	go func() { discovered <- s.discover(ctx) }() // ends with ctx at the latest
	timer := time.NewTimer(s.spec.ProbeTimeout)
	defer timer.Stop()
	select {
	case err := <-discovered:
		if err == nil {
			return nil
		}
		if fatal(err) && !likeUnknownMethod(err) {
			return err
		}
		return s.initializeAfter(ctx, err)
	case <-timer.C:
	}
	initialized := make(chan error, 1)
	go func() { initialized <- s.initialize(ctx) }()
	var first error
	for range 2 {
		select {
		case err := <-discovered:
			if err == nil {
				return nil
			}
			discovered = nil
		case err := <-initialized:
			if err == nil || discovered == nil || fatal(err) || ctx.Err() != nil {
				return err
			}
			initialized, first = nil, err
		}
	}
	return first
}

// fatal reports an error after which initialize would fare no better: nothing
// was reached, or the link broke.
func fatal(err error) bool {
	var rpc *RPCError
	var status *statusError
	if errors.As(err, &rpc) {
		return false
	}
	if errors.As(err, &status) {
		return status.code == http.StatusUnauthorized || status.code == http.StatusForbidden ||
			status.code == http.StatusTooManyRequests || status.code >= 500 || (status.code >= 300 && status.code < 400)
	}
	return errors.Is(err, errNotSent)
}

// likeUnknownMethod reports an answer that servers give to a method which they
// do not know, beside those that say so.
func likeUnknownMethod(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.code >= 500 || status.code == http.StatusForbidden ||
		status.code == http.StatusUnauthorized && !status.challenged)
}

// revisionError says that a server answers server/discover, but not as one of the
// modern era that mcpx speaks.
type revisionError struct{ offered []string }

func (e *revisionError) Error() string {
	return fmt.Sprintf("the server speaks the protocol revisions %q, mcpx %q and older ones with initialize", e.offered, modernVersion)
}

// initializeAfter is initialize after the probe has failed with that error, which
// is returned where it says more.
func (s *session) initializeAfter(ctx context.Context, probe error) error {
	err := s.initialize(ctx)
	var revision *revisionError
	var rpc *RPCError
	if errors.As(probe, &revision) && len(revision.offered) > 0 && errors.As(err, &rpc) {
		return probe
	}
	return err
}

// discover is the modern handshake.
func (s *session) discover(ctx context.Context) error {
	params := s.modernParams(nil)
	message, err := s.do(ctx, string(mcp.MethodServerDiscover), params, s.modernHeader(string(mcp.MethodServerDiscover), params))
	if err != nil {
		return err
	}
	g, err := readGreeting(string(mcp.MethodServerDiscover), message)
	if err != nil {
		return err
	}
	if !slices.Contains(g.supported, modernVersion) {
		return &revisionError{g.supported}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != "" {
		return errors.New("another era was agreed on")
	}
	s.modern, s.version = true, modernVersion
	s.title, s.release, s.instructions = g.title, g.release, g.instructions
	if l, ok := s.link.(*httpLink); ok {
		version := modernVersion
		l.version.Store(&version)
	}
	return nil
}

// initialize is the legacy handshake.
func (s *session) initialize(ctx context.Context) error {
	params, err := json.Marshal(map[string]any{
		"protocolVersion": legacyVersion,
		"capabilities":    struct{}{},
		"clientInfo":      s.clientInfo(),
	})
	if err != nil {
		return err
	}
	message, err := s.do(ctx, "initialize", params, nil)
	if err != nil {
		return err
	}
	g, err := readGreeting("initialize", message)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.version != "" {
		s.mu.Unlock()
		return errors.New("another era was agreed on")
	}
	s.version = cmp.Or(g.version, legacyVersion)
	s.title, s.release, s.instructions = g.title, g.release, g.instructions
	s.takesLevel = g.logging
	s.mu.Unlock()
	if l, ok := s.link.(*httpLink); ok {
		version := s.version
		l.version.Store(&version)
	}
	return s.initialized(ctx)
}

// initialized ends the legacy handshake. A server that refuses the notification,
// or has no answer for it, may do all the rest: over HTTP only the end of the
// session is a reason to give up.
func (s *session) initialized(ctx context.Context) error {
	message := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if l, ok := s.link.(*stdioLink); ok {
		return l.notify(ctx, message)
	}
	bounded, cancel := context.WithTimeout(ctx, s.spec.ProbeTimeout)
	defer cancel()
	err := s.link.notify(bounded, message)
	if err == nil {
		return nil
	}
	var status *statusError
	if l, ok := s.link.(*httpLink); ok && l.session.Load() != nil && errors.As(err, &status) && status.code == http.StatusNotFound {
		return err
	}
	select {
	case <-s.link.done():
		return err
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	s.spec.Logger.Warn("the server does not accept notifications/initialized", "err", s.spec.clean(err.Error(), 300))
	return nil
}
