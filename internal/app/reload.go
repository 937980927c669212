package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"os"
	"reflect"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/front"
	"mcpx/internal/registry"
)

const (
	// watchEvery is the time between two checks of the config file.
	watchEvery = time.Second
	// The reloader tries an unusable file again for settleTime: an editor may be
	// writing it.
	settleTime  = time.Second
	settleEvery = 50 * time.Millisecond
	// youngFile is the age below which a file may have changed without a new time of modification: some file systems
	// store whole seconds.
	youngFile = 3 * time.Second
	// mostLooked bounds the bytes that a fingerprint reads; no config is as long.
	mostLooked = 64 << 20
)

// Source reads the config file: Load with the values of all references. Reading are the options to check an edited
// text without fetching any.
type Source struct {
	Load    func() (*config.Config, error)
	Reading config.Options
}

// Follow applies the config file after each value from asked, after each edit over HTTP and, with watch, when the file
// changes, until ctx ends. If it refuses a file it logs why, and the old config stays in force.
func (a *App) Follow(ctx context.Context, from Source, asked <-chan struct{}, watch bool) {
	r := &reloader{
		file: setup.ConfigFile{Path: a.Config.Path, Reading: from.Reading}, edits: a.edits,
		current: a.Config, log: a.log, load: from.Load, apply: a.reload,
	}
	r.run(ctx, asked, watch)
}

// reloader follows one config file.
type reloader struct {
	file  setup.ConfigFile
	edits <-chan edit
	load  func() (*config.Config, error)
	apply func(*config.Config) error
	log   *slog.Logger

	current *config.Config // the file that was applied last
	seen    fingerprint    // of the file when it was last loaded or refused
}

func (r *reloader) run(ctx context.Context, asked <-chan struct{}, watch bool) {
	var ticks <-chan time.Time
	if watch {
		r.seen = fingerprint{size: -1} // the first check then also notices a change since the start
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			_ = r.reload(ctx, true)
		case e := <-r.edits:
			e.done <- r.edit(ctx, e)
		case <-ticks:
			now := lookAt(r.file.Path, r.seen)
			if now.same(r.seen) {
				r.seen = now
				continue
			}
			_ = r.reload(ctx, false)
		}
	}
}

// reload applies the file, or logs and returns why it refuses it. It waits up to settleTime for a file that is empty,
// broken or missing. A file that equals the config in force is applied only if asked: the variables and files that it
// refers to may have changed.
func (r *reloader) reload(ctx context.Context, asked bool) error {
	patience := time.NewTimer(settleTime)
	defer patience.Stop()
	for {
		r.seen = lookAt(r.file.Path, fingerprint{}) // before the load: a later write is another change
		cfg, err := r.load()
		if err == nil {
			if !asked && reflect.DeepEqual(r.current, cfg) {
				return nil
			}
			if err := r.apply(cfg); err != nil {
				r.logRefusal(err)
				return err
			}
			r.current = cfg
			return nil
		}
		pause := time.NewTimer(settleEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-patience.C:
			pause.Stop()
			r.logRefusal(err)
			return err
		case <-pause.C:
		}
	}
}

// logRefusal logs the faults of a file, each with its place.
func (r *reloader) logRefusal(err error) {
	const message = "config refused, the old one stays in force"
	var faults *config.Faults
	if !errors.As(err, &faults) {
		r.log.Error(message, "err", err)
		return
	}
	for _, fault := range faults.List {
		r.log.Error(message, "file", faults.File, "fault", fault.String())
	}
}

// reload puts another config in force, except for keys that need a restart. If it returns an error, nothing has changed.
func (a *App) reload(to *config.Config) error {
	before := a.current.Load()
	next, err := a.build(to, before)
	if err != nil {
		return err
	}
	a.LogWarnings(to)
	if later := config.NextStart(a.Config, to); len(later) > 0 {
		a.log.Warn("config keys that take effect after a restart", "keys", later)
	}
	changes := a.swap(next)
	a.auditor.changed(to)
	a.log.Info("config loaded again", "file", to.Path, "servers", len(to.Servers), "before", len(before.config.Servers),
		"started", changes.Started, "stopped", changes.Stopped)
	return nil
}

// swap puts next in force, and ends what it no longer has.
//
// The servers, their filters, the rights and what must be confirmed are in the registry's snapshot, which Apply replaces
// as one value. A call reads them there, so it never combines the rights of one config with the servers of another; if
// its server was replaced meanwhile, it starts again with a newer snapshot. Apply stores the Runtime right after the
// snapshot: a client that authenticates with the new auth has the new rights. A request whose credential was removed may
// have them too, until end cancels it. A group's filter and confirm are read when the request begins. The other settings
// are limits, times and texts, where a mixture of old and new ones does no harm.
func (a *App) swap(next *Runtime) registry.Changes {
	before := a.current.Load()
	changes := a.Registry.Apply(next.servers, next.registry, func() { a.current.Store(next) })
	if a.current.Load() != next { // Close was called first
		next.end(before)
		return changes
	}
	before.end(next)
	a.views.each((*front.Front).EndUnknown)
	a.views.drain()
	return changes
}

// fingerprint identifies a state of a file. It is zero for an unreadable file.
type fingerprint struct {
	modified time.Time
	size     int64
	digest   [sha256.Size]byte
	// settled means that the file was not young when it was read: while its time and size stay, so does its content.
	settled bool
}

func (f fingerprint) same(other fingerprint) bool {
	return f.size == other.size && f.digest == other.digest
}

// lookAt takes the fingerprint of a file. It does not read the file if was, the last fingerprint, is settled and has the
// same time and size.
func lookAt(path string, was fingerprint) fingerprint {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fingerprint{}
	}
	if was.settled && info.ModTime().Equal(was.modified) && info.Size() == was.size {
		return was
	}
	now := fingerprint{modified: info.ModTime(), size: info.Size(), settled: time.Since(info.ModTime()) > youngFile}
	f, err := os.Open(path)
	if err != nil {
		return fingerprint{}
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, io.LimitReader(f, mostLooked)); err != nil {
		return fingerprint{}
	}
	digest.Sum(now.digest[:0])
	return now
}
