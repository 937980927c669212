package registry

import "mcpx/internal/catalog"

// saver writes what the snapshots left to save; it ends with Close, after a last
// look.
func (r *Registry) saver() {
	for {
		select {
		case <-r.unsaved:
			r.save(false)
		case <-r.stop:
			r.save(true)
			return
		}
	}
}

// save keeps the catalogues on disk that have changed; last says that mcpx ends.
func (r *Registry) save(last bool) {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	var all []*entry
	for _, e := range r.entries {
		if e.upstream != nil && e.server.Key != "" {
			all = append(all, e)
		}
	}
	r.mu.Unlock()
	for _, e := range all {
		r.saveOne(e, last)
	}
}

// saveOne keeps the catalogue of a server. Where it has none, the disk keeps that it
// was tried: no later start waits for its first list.
func (r *Registry) saveOne(e *entry, last bool) {
	status := e.upstream.Status()
	rec := &record{
		Protocol: status.Protocol, Modern: status.Modern,
		Title: status.Title, Version: status.Version, Instructions: status.Instructions,
		tools: status.Tools, tried: !status.Known,
	}
	trying := status.State == catalog.Connecting && !last
	if rec.tried && (e.onDisk || trying || e.saved != nil) || (e.saved != nil && e.saved.says(rec)) {
		return
	}
	e.saved = rec
	if err := r.cache.save(e.server.Key, rec); err != nil {
		r.log.Warn("keeping the catalogue", "server", e.server.Spec.Name, "err", err)
	}
}
