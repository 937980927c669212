package executor

import (
	"context"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// awaitServer waits for the server of a request, but not longer than the request may still wait, nor longer than the server's
// call_timeout. Then it renews the request's catalogue, because the catalogue from before the wait lacks the server's tools.
func (e run) awaitServer(ctx context.Context, r *Request) {
	if timeout := e.options.Servers[r.Server].CallTimeout; timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = bounded
	}
	e.registry.WaitStart(ctx, r.Server, e.waitLeft(r), e.starting(r))
	r.Catalogue = e.visible(r)
}

// FindServer finds a server for a request that is not a call. Like a call, it waits for a server whose tools are not known yet,
// and returns the catalogue from after the wait. If the server lacks the tool r.Tool, FindServer asks it for its tools once
// more. If there is no such server, the failure names the servers that have the tool.
func (e *Executor) FindServer(ctx context.Context, r Request) (*catalog.Snapshot, *catalog.Server, *results.Failure) {
	run := e.begin()
	r.began, r.Event = time.Now(), &request.Event{} // observers do not receive this event
	bounded, cancel := context.WithTimeout(ctx, run.waitLeft(&r))
	defer cancel()
	s, err := run.findServer(bounded, &r)
	if err == nil && r.Tool != "" && lacks(s, r.Tool) {
		if again, _, _ := run.lookAgain(ctx, &r); again != nil {
			s = again
		}
	}
	if err != nil {
		return r.Catalogue, nil, run.failure(&r, target{}, err)
	}
	return r.Catalogue, s, nil
}

// ToolNotFound returns the failure for a tool that s does not have. If other servers have the tool and the caller of r sees them,
// the failure names them.
func (e *Executor) ToolNotFound(r *Request, s *catalog.Server, name string) *results.Failure {
	return e.toolNotFound(r, s, name).failure()
}

func (e *Executor) toolNotFound(r *Request, s *catalog.Server, name string) *notFoundError {
	inTurn := func(search func()) {
		owner := r.Client.On().Key()
		if e.guessing.Enter(context.Background(), owner) == nil {
			defer e.guessing.Leave(owner)
			search()
		}
	}
	return &notFoundError{server: s, name: name, known: s.ToolNames(), owners: e.owners(r, name, s.Name), inTurn: inTurn}
}

// findServer finds the server of a request. If it has to wait for the server (awaitServer) or for the caller's login, it renews
// the request's catalogue afterwards.
func (e run) findServer(ctx context.Context, r *Request) (*catalog.Server, error) {
	if r.Server == builtin.Name {
		r.Event.KnownServer = true
		return e.own(r.Client, r.Scope, r.Catalogue), nil
	}
	s, ok := r.Catalogue.Server(r.Server)
	for waitedFor := uint64(0); ok && !s.Known && s.State == catalog.Connecting && s.Generation != waitedFor; {
		waitedFor = s.Generation // changes when a reload replaces the server
		e.awaitServer(ctx, r)
		s, ok = r.Catalogue.Server(r.Server)
	}
	if !ok {
		missing := &notFoundError{name: r.Server, known: r.Catalogue.ServerNames(), empty: r.Catalogue.Empty}
		if missing.owners = e.owners(r, r.Tool, ""); missing.owners == nil {
			missing.owners = e.owners(r, r.Server, "") // the tool may stand in place of the server
		}
		return nil, missing
	}
	r.Event.KnownServer = true
	if s.State == catalog.NeedsLogin && !s.Known {
		if err := e.logIn(ctx, r); err != nil {
			return nil, err
		}
		r.Catalogue = e.visible(r)
		if s, ok = r.Catalogue.Server(r.Server); !ok {
			return nil, &notFoundError{name: r.Server, known: r.Catalogue.ServerNames(), empty: r.Catalogue.Empty}
		}
	}
	if !s.Known {
		return nil, &request.UnavailableError{
			State: s.State, Reason: s.Reason, RetryAfter: time.Duration(s.RetryAfter * float64(time.Second)),
		}
	}
	return s, nil
}

// logIn asks the caller to log in at a server whose tools can be listed only with the caller's own login.
func (e run) logIn(ctx context.Context, r *Request) error {
	if err := e.registry.LogIn(ctx, r.Client, r.Server, true); err != nil {
		return err
	}
	return e.registry.WaitPrincipalLists(ctx, r.Client, r.Server)
}

func (e run) find(ctx context.Context, r *Request) (target, error) {
	s, err := e.findServer(ctx, r)
	if err != nil {
		return target{}, err
	}
	found, ok := s.Find(r.Tool)
	if !ok {
		if s, found, err = e.lookAgain(ctx, r); err != nil {
			return target{server: s}, err
		}
	}
	r.Tool, r.Event.Tool = found.Name, found.Name
	r.Event.Known, r.Event.ReadOnly = true, found.Hints.IsReadOnly()
	return target{server: s, tool: found}, nil
}
