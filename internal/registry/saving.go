package registry

// saver writes what the snapshots left to save; it ends with Close, after a last
// look.
func (r *Registry) saver() {
	for {
		select {
		case <-r.unsaved:
			r.save()
		case <-r.stop:
			r.save()
			return
		}
	}
}

// save keeps the catalogues on disk that have changed.
func (r *Registry) save() {
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
		r.saveOne(e)
	}
}

func (r *Registry) saveOne(e *entry) {
	status := e.upstream.Status()
	rec := &record{
		Protocol: status.Protocol, Modern: status.Modern,
		Title: status.Title, Version: status.Version, Instructions: status.Instructions,
		tools: status.Tools,
	}
	if !status.Known || (e.saved != nil && e.saved.says(rec)) {
		return
	}
	e.saved = rec
	if err := r.cache.save(e.server.Key, rec); err != nil {
		r.log.Warn("keeping the catalogue", "server", e.server.Spec.Name, "err", err)
	}
}
