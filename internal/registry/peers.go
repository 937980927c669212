package registry

import (
	"context"
	"time"
)

// Peers asks the other replicas of mcpx for the catalogue of a server with this [Server.Key]. It returns what
// [Registry.Saved] returns at one of them, or nil if none has it. It must return at once if there is no other replica, and
// soon after ctx has ended.
type Peers func(ctx context.Context, key string) (saved []byte)

// peersWithin is how long newEntry waits for the other replicas to send the catalogue of one server. New asks for all servers at
// once, and Apply for one server after the other. A new registry answers no client before New has these catalogues.
const peersWithin = time.Second

// remembered returns what is known about a server before mcpx connects to it, or nil. It prefers what another replica lists to
// what the disk has, because clients already see the lists of that replica, and all replicas should list the same.
func (r *Registry) remembered(key string) *record {
	if r.options.Peers != nil && key != "" {
		ctx, cancel := context.WithTimeout(context.Background(), peersWithin)
		defer cancel()
		if rec := decode(r.options.Peers(ctx, key)); rec != nil && !rec.tried {
			return rec
		}
	}
	return r.cache.load(key)
}

// Saved returns the catalogue of the server with this [Server.Key], as this registry lists it. Other replicas ask for it
// through their [Options.Peers]. Saved returns nil if no server has the key, or if mcpx does not know the server's catalogue.
func (r *Registry) Saved(key string) []byte {
	e := r.keyed(key)
	if e == nil {
		return nil
	}
	status := e.status()
	rec := r.recordOf(e, &status)
	if !status.Known {
		r.mu.Lock()
		known := e.cached
		r.mu.Unlock()
		if known == nil || known.tried {
			return nil
		}
		copied := *known
		rec = &copied
	}
	data, err := encode(rec)
	if err != nil {
		r.log.Warn("passing a catalogue to another replica", "server", e.server.Spec.Name, "err", err)
		return nil
	}
	return data
}

// keyed returns the running server with this key, or nil.
func (r *Registry) keyed(key string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if key != "" && e.server.Key == key && e.upstream != nil {
			return e
		}
	}
	return nil
}
