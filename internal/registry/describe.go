package registry

import (
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/upstream"
)

// describe returns a server as the snapshot shows it. Until the server has listed its tools, they come from the saved record of the
// server (e.cached), if there is one. The caller holds the lock.
func (r *Registry) describe(name string, e *entry) catalog.Server {
	s := catalog.Server{
		Name: name, Description: e.server.Description, Transport: e.server.Spec.Type, Generation: e.generation, Key: e.server.Key,
	}
	switch {
	case e.server.Disabled:
		s.State = catalog.Disabled
		return s
	case e.server.Fault != "":
		s.State, s.Reason = catalog.Unavailable, e.server.Fault
		return s
	}
	status := e.status()
	tools := status.Tools
	s.State, s.Reason, s.Protocol = status.State, status.Reason, status.Protocol
	s.Title, s.Version, s.Instructions, s.Known = status.Title, status.Version, status.Instructions, status.Known
	if !status.RetryAfter.IsZero() {
		s.RetryAfter = max(0, time.Until(status.RetryAfter).Seconds())
	}
	if e.server.Logins != nil && !up(status.State) && !status.Known && (e.cached == nil || e.cached.tried) {
		s.State, s.Reason = catalog.NeedsLogin, ""
	}
	if status.Known && status.Listed {
		e.cached = nil // the server has sent all its lists, so the saved record is no longer needed
	}
	r.meetOlder(e, &status)
	s.Offers, s.Items, s.Listed = e.items(&status)
	s.Offers = e.offersOfBoth(s.Offers)
	switch {
	case status.Known || e.cached == nil:
	case e.cached.tried:
		s.Tried = true
	default:
		tools = e.cached.tools
		s.Known, s.Title, s.Version, s.Instructions = true, e.cached.Title, e.cached.Version, e.cached.Instructions
	}
	if e.last.Name != "" && catalog.SameTools(tools, e.last.Tools) {
		return s.WithToolsOf(&e.last)
	}
	e.last = s.WithTools(tools)
	return e.last
}

// items returns what a server offers besides tools. Until the server has listed all of that, items takes everything from the saved
// record of the server (e.cached), also lists that the session has read already. It does not mix the two, because others compare
// the pointers to notice a change: a mixture would have to stay the same pointer as long as neither part changes. The caller holds
// the lock.
func (e *entry) items(status *upstream.Status) (offers catalog.Offers, items *catalog.Items, listed bool) {
	if !status.Listed && e.cached != nil && e.cached.Offers != nil {
		if newer, ok := e.older.byEra[upstream.EraModern]; ok {
			return newer, e.cached.items, true
		}
		return *e.cached.Offers, e.cached.items, true
	}
	return status.Offers, status.Items, status.Listed
}
