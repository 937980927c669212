package registry

import (
	"maps"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/upstream"
)

// saver saves changed catalogues until Close, and then a last time. Once a day it also deletes unused catalogues.
func (r *Registry) saver() {
	daily := time.NewTicker(24 * time.Hour)
	defer daily.Stop()
	for {
		select {
		case <-r.unsaved:
			r.save(false)
		case <-daily.C:
			r.sweep()
		case <-r.stop:
			r.save(true)
			return
		}
	}
}

// save writes the changed catalogues to disk. final means that the registry is closed.
func (r *Registry) save(final bool) {
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
		r.saveOne(e, final)
	}
}

// saveOne writes the catalogue of a server to disk, if it has changed. If there has never been a catalogue, saveOne records
// that mcpx has tried to connect, so that later starts of mcpx do not wait for the server's first list. It does not do so while
// the server is connecting; for the last save see [Options.Patience].
func (r *Registry) saveOne(e *entry, final bool) {
	status := e.status()
	rec := r.recordOf(e, &status)
	trying := status.State == catalog.Connecting && !(final && time.Since(e.began) >= r.options.Patience)
	if rec.tried && (e.earlier || trying || e.saved != nil) || (e.saved != nil && e.saved.equal(rec)) {
		return
	}
	e.saved = rec
	if err := r.cache.save(e.server.Key, rec); err != nil {
		r.log.Warn("keeping the catalogue", "server", e.server.Spec.Name, "err", err)
	}
}

// recordOf returns the record of the tools that a server has listed since its upstream started. What the server offers besides
// tools may still be from the saved record.
func (r *Registry) recordOf(e *entry, status *upstream.Status) *record {
	rec := &record{
		Protocol: status.Protocol, Modern: status.Modern, Unprobed: status.Unprobed && e.era != upstream.EraLegacy,
		Title: status.Title, Version: status.Version, Instructions: status.Instructions,
		tools: status.Tools, tried: !status.Known,
	}
	r.mu.Lock()
	offers, items, listed := e.items(status)
	if status.Listed {
		e.older.byEra[eraOf(status.Modern)] = status.Offers
	}
	byEra := maps.Clone(e.older.byEra)
	r.mu.Unlock()
	if rec.items = items; listed {
		rec.Offers = &offers
	}
	rec.ByEra = byEra
	return rec
}
