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

	"mcpx/internal/base/wire"
	"mcpx/internal/transport"
)

// The eras of MCP, as values of [Spec.Protocol] and [Spec.Era]. A legacy session begins with initialize (revisions up to
// 2025-11-25). In the modern era (from 2026-07-28) there is no initialize; the client may send server/discover.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
)

// handshake finds out which era the server speaks, and makes the session in that era. If the config or the transport fixes the era,
// handshake tries only that era. Otherwise it takes these steps:
//
//   - It sends the modern server/discover (the probe). It skips the probe if the server was legacy when it was last seen, or if the
//     session belongs to a legacy client.
//   - If the server accepts the probe, the session is modern. If mcpx cannot reach the server, or the server refuses all requests
//     (see fatal and likeUnknownMethod), handshake fails.
//   - In all other cases it sends the legacy initialize: if it sent no probe, if the server refused the probe, or if no answer came
//     in time. Without an answer, the server may be slow to start, or may ignore unknown methods.
//   - If the server refuses initialize, and has not answered a probe, handshake sends server/discover, again or for the first time.
//
// A server may accept initialize, and also accept the probe, but too late. Then handshake fails with errBoth, and the caller can
// connect again, for a modern session. If a server does not answer the probe, and then takes at least Timeouts.Probe to accept
// initialize, the session is legacy. But Unprobed is set, so that the next session sends the probe again. Over HTTP, handshake
// fails with errUnheard if only initialize was answered; the session is legacy then too.
func (s *session) handshake(ctx context.Context) error {
	switch {
	case s.spec.Protocol == EraLegacy, s.link.Traits().LegacyOnly:
		return s.initialize(ctx, nil)
	case s.spec.Protocol == EraModern:
		return s.discover(ctx)
	}
	probe, answered, finish := error(nil), false, func() bool { return false }
	owner := s.spec.owner()
	s.Unprobed = owner != nil && owner.Version != "" && !owner.Modern()
	if s.spec.Era != EraLegacy && !s.Unprobed {
		answered, finish, probe = s.probe(ctx)
		if probe == nil || answered && fatal(probe) && !likeUnknownMethod(probe) {
			return probe
		}
	}
	began := time.Now()
	err := s.initialize(ctx, probe)
	slow := probe != nil && !answered && time.Since(began) >= s.spec.Timeouts.Probe
	if agreed := finish(); err == nil && agreed {
		return errBoth
	} else if err == nil && slow {
		s.Unprobed = true
	}
	if err == nil && probe != nil && !answered && !s.link.Traits().OneStream {
		return errUnheard
	}
	_, rpc := errors.AsType[*wire.RPCError](err)
	_, status := errors.AsType[*transport.StatusError](err) // a modern-only server may refuse initialize with an HTTP status
	if refused := rpc || status && !fatal(err); !refused {
		return err
	}
	if revision, ok := errors.AsType[*revisionError](probe); ok && len(revision.offered) > 0 {
		return probe // the error of the probe is the more helpful one
	}
	if !answered && s.discover(ctx) == nil {
		return nil
	}
	return err
}

// errBoth means that a server speaks both eras: mcpx sent server/discover, got no answer in time and so sent initialize too,
// and the server accepted both.
var errBoth = errors.New("the server has accepted both eras")

// errUnheard means that a server has not answered server/discover in time, but has accepted initialize. It may ignore unknown methods,
// or it was slow to start, as it was not running or had to be woken. In the second case it now answers the probe in time.
var errUnheard = errors.New("the server has not answered server/discover")

// probe sends server/discover and waits for the answer for at most Timeouts.Probe. err is nil if the session is then modern.
// answered reports whether the answer, or an error, came in that time. If not, the caller must call finish after initialize.
//
// Over HTTP an unanswered server/discover is cancelled, because a server may serve only one request at a time. If all messages
// share one stream, an unanswered server/discover stays open while initialize is sent; finish then ends server/discover, and
// reports whether the server has accepted it after all. On such a stream, if the server was modern when it was last seen, probe
// assumes that it is only slow to start, and waits for the answer until ctx ends.
func (s *session) probe(ctx context.Context) (answered bool, finish func() bool, err error) {
	if s.link.Traits().OneStream && s.spec.Era == EraModern {
		err = s.discover(ctx)
		return ctx.Err() == nil, func() bool { return false }, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.spec.Timeouts.Probe)
	defer cancel()
	if !s.link.Traits().OneStream {
		err = s.discover(bounded)
		return bounded.Err() == nil, func() bool { return false }, err
	}
	waiting, end := context.WithCancel(ctx)
	var g greeting
	asked := make(chan error, 1)
	go func() { // the goroutine ends with the answer, or when finish is called
		var failed error
		g, failed = s.askEra(waiting)
		asked <- failed
	}()
	select {
	case err = <-asked:
		if end(); err == nil {
			s.agreedModern(g)
		}
		return bounded.Err() == nil, func() bool { return false }, err
	case <-bounded.Done():
	}
	return false, func() bool {
		// The server may have answered server/discover before it answered initialize. The first answer may not have
		// reached this func yet, so wait for it a little.
		stop := time.AfterFunc(s.spec.Timeouts.Probe/20, end)
		defer stop.Stop()
		defer end()
		return <-asked == nil
	}, bounded.Err()
}

// fatal reports whether err means that initialize would fail too: mcpx cannot reach the server, or the server currently
// refuses all requests.
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

// likeUnknownMethod reports whether err is an HTTP error that some servers return for unknown methods.
func likeUnknownMethod(err error) bool {
	status, ok := errors.AsType[*transport.StatusError](err)
	return ok && (status.Code >= 500 || status.Code == http.StatusForbidden ||
		status.Code == http.StatusUnauthorized && !status.Challenged)
}

// revisionError means that a server answers server/discover, but supports no modern revision that mcpx knows.
type revisionError struct{ offered []string }

func (e *revisionError) Error() string {
	return fmt.Sprintf("the server speaks the protocol revisions %q, mcpx %q and older ones with initialize", e.offered, modernVersion)
}

// listed returns the revisions that the server lists as supported, if err says that it refuses a revision. For any other error,
// listed returns nil.
func listed(err error) []string {
	if revision, ok := errors.AsType[*revisionError](err); ok {
		return revision.offered
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		var data mcp.UnsupportedProtocolVersionData
		_ = json.Unmarshal(rpc.Data, &data) // if the data is invalid, Supported stays empty
		return data.Supported
	}
	return nil
}

// legacyOf returns the newest legacy revision that mcpx knows, of those that the server lists as supported in its refusal. It
// returns an empty string if there is none.
func legacyOf(refusal error) string {
	offered := listed(refusal)
	for _, version := range mcp.ValidProtocolVersions {
		if !mcp.IsModernProtocol(version) && slices.Contains(offered, version) {
			return version
		}
	}
	return ""
}

// discover does the modern handshake.
func (s *session) discover(ctx context.Context) error {
	g, err := s.askEra(ctx)
	if err == nil {
		s.agreedModern(g)
	}
	return err
}

// askEra sends server/discover. If the server refuses the revision of the request, but lists the same revision as
// supported, askEra sends the request once more, as the specification requires. The error is nil if the server speaks
// the modern revision.
func (s *session) askEra(ctx context.Context) (g greeting, err error) {
	message, err := s.doAs(ctx, s.newID(), string(mcp.MethodServerDiscover), nil, true)
	if slices.Contains(listed(err), modernVersion) {
		message, err = s.doAs(ctx, s.newID(), string(mcp.MethodServerDiscover), nil, true)
	}
	if err != nil {
		return g, err
	}
	if g, err = readGreeting(string(mcp.MethodServerDiscover), message); err != nil {
		return g, err
	}
	if !slices.Contains(g.supported, modernVersion) {
		return g, &revisionError{g.supported}
	}
	return g, nil
}

func (s *session) agreedModern(g greeting) {
	s.Modern = true
	s.agreed(modernVersion, g)
}

// agreed stores the outcome of the handshake, and tells the link the revision.
func (s *session) agreed(version string, g greeting) {
	s.Protocol = version
	if s.Version = g.release; !s.spec.NoInstructions {
		s.Title, s.Instructions = g.title, g.instructions
	}
	s.Stateful = !s.Modern && !s.link.Traits().Sessionless
	s.offers = g.offers
	s.level.settable = g.logging && !s.Modern
	s.link.Agreed(version)
}

// initialize does the legacy handshake. refusal is the error of the probe, or nil if mcpx has sent no probe. initialize requests
// the newest legacy revision that this error lists. If it lists none, initialize requests legacyVersion. If the server refuses that
// revision and lists another legacy one, initialize tries once more with the listed revision.
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
	message, err := s.doAs(ctx, s.newID(), "initialize", params, false)
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

// initialized completes the legacy handshake: it sends notifications/initialized. A server that refuses this notification
// over HTTP, or does not answer it, may still work, so only the end of the session or of ctx is an error.
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
