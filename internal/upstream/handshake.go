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

// The values of [Spec.Protocol] that pin an era.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
)

// handshake negotiates the era with the server. It tries the modern era first, unless the server was legacy when
// it was last seen, or the session belongs to a legacy client. A server that does not answer this probe in time
// may be slow to start, or may ignore unknown methods. handshake then sends initialize, and if the server refuses
// that, the probe once more. If the server accepts both, the session has become legacy for nothing, and the error
// is errBoth. If the server is slow, but has not answered the probe, the session is legacy, and the era of the
// server stays unknown, so that the next session probes again.
func (s *session) handshake(ctx context.Context) error {
	switch {
	case s.spec.Protocol == EraLegacy, s.link.Traits().LegacyOnly:
		return s.initialize(ctx, nil)
	case s.spec.Protocol == EraModern:
		return s.discover(ctx)
	}
	probe, answered, late := error(nil), false, func() bool { return false }
	owner := s.spec.owner()
	s.Unprobed = owner != nil && owner.Version != "" && !owner.Modern()
	if s.spec.Era != EraLegacy && !s.Unprobed {
		answered, late, probe = s.probe(ctx)
		if probe == nil || answered && fatal(probe) && !likeUnknownMethod(probe) {
			return probe
		}
	}
	began := time.Now()
	err := s.initialize(ctx, probe)
	slow := probe != nil && !answered && time.Since(began) >= s.spec.Timeouts.Probe
	if agreed := late(); err == nil && agreed {
		return errBoth
	} else if err == nil && slow {
		s.Unprobed = true
	}
	_, rpc := errors.AsType[*wire.RPCError](err)
	_, status := errors.AsType[*transport.StatusError](err) // a modern-only server may refuse initialize like this
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

// errBoth means that a server of both eras has accepted the modern one only after mcpx had sent initialize.
var errBoth = errors.New("the server has accepted both eras")

// probe calls discover for a server that may be modern. It waits for the answer for at most Timeouts.Probe;
// answered reports whether it came. On the stream of a server that was modern when it was last seen, which is only slow to
// start, it waits as long as a connection may take. On a stream the probe goes on in the background meanwhile, so that initialize
// need not wait: late ends it, and reports whether the server has accepted the modern era by then. Over HTTP a
// server may serve only one request at a time, so there the probe ends first.
func (s *session) probe(ctx context.Context) (answered bool, late func() bool, err error) {
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
	go func() { // the goroutine ends when late is called
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
		// An answer that the server sent before its answer to initialize may still be on its way to this
		// goroutine.
		stop := time.AfterFunc(s.spec.Timeouts.Probe/20, end)
		defer stop.Stop()
		defer end()
		return <-asked == nil
	}, bounded.Err()
}

// fatal reports whether after err initialize would fail too, because mcpx did not reach the server, or the link
// broke.
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

// listed returns the revisions that a server lists in an error because it does not support the requested one.
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

// legacyOf returns the newest legacy revision that the server lists in a refusal and mcpx knows, or an empty
// string.
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

// askEra sends server/discover. As the specification requires, it sends it once more if the server refuses the
// revision but lists it as supported. The error is nil if the server speaks the modern revision.
func (s *session) askEra(ctx context.Context) (g greeting, err error) {
	message, err := s.doAs(ctx, string(mcp.MethodServerDiscover), nil, true)
	if slices.Contains(listed(err), modernVersion) {
		message, err = s.doAs(ctx, string(mcp.MethodServerDiscover), nil, true)
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

// agreed stores the outcome of the handshake.
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

// initialize does the legacy handshake. refusal is the server's error to an earlier attempt, or nil; initialize
// requests a revision that this error lists, if any. If the server refuses that revision, initialize tries once
// more in the same way.
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

// initialized completes the legacy handshake with the notification. A server that refuses this notification over
// HTTP, or does not answer it, may still work, so only the end of the session is an error.
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
