package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/transport"
)

// The values of [Spec.Protocol] that pin an era.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
)

// handshake agrees on an era: the modern one first, unless the server spoke the
// legacy one when it was last seen, or the session belongs to a client that does. A
// server that does not answer the probe within its bound may be slow to start, or ignore
// what it does not know: it is asked to initialize, and probed once more where it knows
// no initialize.
func (s *session) handshake(ctx context.Context) error {
	switch {
	case s.spec.Protocol == EraLegacy, s.link.Traits().LegacyOnly:
		return s.initialize(ctx, nil)
	case s.spec.Protocol == EraModern:
		return s.discover(ctx)
	}
	probe, answered := error(nil), false
	owner := s.spec.owner()
	s.Unprobed = owner != nil && owner.Version != "" && !owner.Modern()
	if !s.spec.Legacy && !s.Unprobed {
		bounded, cancel := context.WithTimeout(ctx, s.spec.Timeouts.Probe)
		probe = s.discover(bounded)
		answered = bounded.Err() == nil
		cancel()
		if probe == nil || answered && fatal(probe) && !likeUnknownMethod(probe) {
			return probe
		}
	}
	err := s.initialize(ctx, probe)
	_, rpc := errors.AsType[*wire.RPCError](err)
	_, status := errors.AsType[*transport.StatusError](err) // a server of the modern era alone may say no more
	if refused := rpc || status && !fatal(err); !refused {
		return err
	}
	if revision, ok := errors.AsType[*revisionError](probe); ok && len(revision.offered) > 0 {
		return probe // which says more
	}
	if !answered && s.discover(ctx) == nil {
		return nil
	}
	return err
}

// fatal reports an error after which initialize would fare no better: nothing
// was reached, or the link broke.
func fatal(err error) bool {
	if _, answered := errors.AsType[*wire.RPCError](err); answered {
		return false
	}
	if status, ok := errors.AsType[*transport.StatusError](err); ok {
		return status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden ||
			status.Code == http.StatusTooManyRequests || status.Code >= 500 || (status.Code >= 300 && status.Code < 400)
	}
	return errors.Is(err, transport.ErrNotSent)
}

// likeUnknownMethod reports an answer that servers give to a method which they
// do not know, beside those that say so.
func likeUnknownMethod(err error) bool {
	status, ok := errors.AsType[*transport.StatusError](err)
	return ok && (status.Code >= 500 || status.Code == http.StatusForbidden ||
		status.Code == http.StatusUnauthorized && !status.Challenged)
}

// revisionError says that a server answers server/discover, but not as one of the
// modern era that mcpx speaks.
type revisionError struct{ offered []string }

func (e *revisionError) Error() string {
	return fmt.Sprintf("the server speaks the protocol revisions %q, mcpx %q and older ones with initialize", e.offered, modernVersion)
}

// listed are the revisions that a server names where it refuses one.
func listed(err error) []string {
	if revision, ok := errors.AsType[*revisionError](err); ok {
		return revision.offered
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		var data mcp.UnsupportedProtocolVersionData
		_ = json.Unmarshal(rpc.Data, &data) // else nothing is listed
		return data.Supported
	}
	return nil
}

// legacyOf is the newest legacy revision that a server lists where it refuses
// another; empty if there is none that mcpx knows.
func legacyOf(refusal error) string {
	offered := listed(refusal)
	for _, version := range mcp.ValidProtocolVersions {
		if !mcp.IsModernProtocol(version) && slices.Contains(offered, version) {
			return version
		}
	}
	return ""
}

// discover is the modern handshake. A server that refuses the revision, but lists it among
// those that it supports, is asked once more, as the specification wants.
func (s *session) discover(ctx context.Context) error {
	message, err := s.doAs(ctx, string(mcp.MethodServerDiscover), nil, true)
	if slices.Contains(listed(err), modernVersion) {
		message, err = s.doAs(ctx, string(mcp.MethodServerDiscover), nil, true)
	}
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
	s.Modern = true
	s.agreed(modernVersion, g)
	return nil
}

// agreed takes over what the handshake has found.
func (s *session) agreed(version string, g greeting) {
	s.Protocol = version
	s.Title, s.Version, s.Instructions = g.title, g.release, g.instructions
	s.Stateful = !s.Modern && !s.link.Traits().Sessionless
	s.offers = g.offers
	s.level.settable = g.logging && !s.Modern
	s.link.Agreed(version)
}

// initialize is the legacy handshake, with a revision that the server has listed if
// refusal, which may be nil, names one. A server that refuses it is asked once more
// in the same way.
func (s *session) initialize(ctx context.Context, refusal error) error {
	version := cmp.Or(legacyOf(refusal), legacyVersion)
	err := s.initializeWith(ctx, version)
	if other := legacyOf(err); other != "" && other != version {
		err = s.initializeWith(ctx, other)
	}
	return err
}

func (s *session) initializeWith(ctx context.Context, version string) error {
	params, err := json.Marshal(map[string]any{
		"protocolVersion": version,
		"capabilities":    s.capabilities(),
		"clientInfo":      s.clientInfo(),
	})
	if err != nil {
		return err
	}
	message, err := s.doAs(ctx, "initialize", params, false)
	if err != nil {
		return err
	}
	g, err := readGreeting("initialize", message)
	if err != nil {
		return err
	}
	s.agreed(cmp.Or(g.version, version), g)
	return s.initialized(ctx)
}

// initialized ends the legacy handshake. A server that refuses the notification,
// or has no answer for it, may do all the rest: over HTTP only the end of the
// session is a reason to give up.
func (s *session) initialized(ctx context.Context) error {
	message := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	bounded, cancel := context.WithTimeout(ctx, s.spec.Timeouts.Probe)
	defer cancel()
	err := s.link.Notify(bounded, message)
	switch {
	case err == nil || errors.Is(err, transport.ErrGone) || s.link.Life().Cause() != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	s.spec.Logger.Warn("the server does not accept notifications/initialized", "err", s.spec.Secrets.Line(err.Error(), 300))
	return nil
}
