package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/front"
	"mcpx/internal/programs"
	"mcpx/internal/registry"
)

const (
	// watchEvery is the time between two checks of the config file for changes.
	watchEvery = time.Second
	// If a config file cannot be loaded, the reloader reads it again every settleEvery until settleTime has passed, because an
	// editor may still be writing it.
	settleTime  = time.Second
	settleEvery = 50 * time.Millisecond
	// Some file systems store the modification time in whole seconds. So a file that is younger than youngFile may change again without
	// getting another time.
	youngFile = 3 * time.Second
	// A fingerprint covers only the first fingerprintBytes bytes of a file. A longer file is refused as a config.
	fingerprintBytes = 64 << 20
)

// Source reads the config file. Load resolves all references in it. Reading has the options for checking an edited text, in which
// references are not resolved.
type Source struct {
	Load    func() (*config.Config, error)
	Reading config.Options
}

// Reloaded says what the last reload changed. The embedded Changes have the names of the servers that were started and stopped.
type Reloaded struct {
	registry.Changes
	// Changed has the names of the servers that have new settings. Keys and Later have the changed keys that do not belong to a
	// server: those in Keys are in effect already, and those in Later take effect only when mcpx restarts.
	Changed, Keys, Later []string
	// Unavailable has the faults in the entries of single servers, which are therefore not served.
	Unavailable []config.Fault
}

// ReloadRequest asks Follow for a reload. Follow calls Done with the outcome, unless Done is nil.
type ReloadRequest struct {
	// By says, for the audit trail, who asks: a signal or a command.
	By   string
	Done func(Reloaded, error)
}

// Follow applies the config file after each request from the channel requests, and after each edit over HTTP. If watch is true, it
// also does so when the file, its lock file (mcpx lock) or a file that it refers to (${file:PATH}, envFile) changes. Follow also
// applies the config again when a stored program changes. Without watch, that works only if the folder of stored programs existed
// when Follow was called, or at a later request or edit. If Follow refuses a file, it logs the reason, and mcpx keeps using the old
// config. Follow returns when ctx ends.
func (a *App) Follow(ctx context.Context, from Source, requests <-chan ReloadRequest, watch bool) {
	file := setup.ConfigFile{Path: a.Config.Path, Reading: from.Reading}
	a.source.Store(&file)
	r := &reloader{
		file: file, edits: a.edits,
		current: a.Config, log: a.log, load: from.Load, apply: a.reload,
		outcome: func() Reloaded { return a.reloaded }, record: a.auditor.changed,
	}
	r.text, _ = os.ReadFile(a.Config.Path)
	r.run(ctx, requests, watch)
}

// reloader applies the changes of one config file.
type reloader struct {
	file  setup.ConfigFile
	edits <-chan edit
	load  func() (*config.Config, error)
	apply func(*config.Config) error
	// outcome returns what the last successful reload changed.
	outcome func() Reloaded
	log     *slog.Logger

	// record records that a config was applied; nil means that nothing is recorded.
	record func(change configChange)

	current *config.Config // the config that was applied last
	text    []byte         // the text of the file when current was applied
	files   []string       // the files to which the config file refers; they are set even if the config was refused
	stored  string         // the state of the folder of stored programs, as last seen
	seen    fingerprint    // the fingerprint of the file when it was last loaded or refused
	beside  fingerprints   // the fingerprints of the lock file and of the files in the field files
}

// configChange is the change from one config to the next.
type configChange struct {
	by            string
	from, to      *config.Config
	before, after []byte // the texts of the file before and after the change
}

// fingerprints are the fingerprints of the lock file and of the files that the config refers to, by path.
type fingerprints map[string]fingerprint

func (r *reloader) lookBeside(files []string) fingerprints {
	now := make(fingerprints)
	for _, path := range append([]string{LockPath(r.current)}, files...) {
		now[path] = lookAt(path, r.beside[path])
	}
	return now
}

func (f fingerprints) same(other fingerprints) bool {
	return maps.EqualFunc(f, other, fingerprint.same)
}

func (r *reloader) run(ctx context.Context, asked <-chan ReloadRequest, watch bool) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	if r.stored = storedIn(r.current); watch || r.stored != "" {
		r.seen = fingerprint{size: -1} // differs from each real fingerprint, so the first check reads the file
		r.files = r.current.Referred
		r.beside = r.lookBeside(r.files)
	}
	var ticks <-chan time.Time
	for {
		if watch || r.stored != "" {
			ticks = ticker.C // from now on, also if the folder of stored programs goes away for a while
		}
		select {
		case <-ctx.Done():
			return
		case request := <-asked:
			err := r.reload(ctx, cmp.Or(request.By, "a request"), true)
			if request.Done != nil {
				request.Done(r.outcome(), err)
			}
		case e := <-r.edits:
			e.done <- r.edit(ctx, e)
		case <-ticks:
			r.followStored()
			if !watch {
				continue
			}
			now, beside := lookAt(r.file.Path, r.seen), r.lookBeside(r.files)
			if now.same(r.seen) && beside.same(r.beside) {
				r.seen, r.beside = now, beside
				continue
			}
			_ = r.reload(ctx, "a changed file", !beside.same(r.beside))
		}
	}
}

// followStored applies the config again if the folder of stored programs has changed.
func (r *reloader) followStored() {
	stored := storedIn(r.current)
	if stored == r.stored {
		return
	}
	r.stored = stored
	if err := r.apply(r.current); err != nil {
		r.logRefusal(err)
		return
	}
	r.applied("a changed program", r.current, r.text)
}

// Beside returns a text that differs after each change of the files that mcpx reads beside the config file: the lock file and the
// stored programs.
func Beside(cfg *config.Config) string {
	lock := lookAt(LockPath(cfg), fingerprint{})
	return fmt.Sprintf("%d %x\n%s", lock.size, lock.digest, storedIn(cfg))
}

// Reread applies the config of an App again, with the files beside it as they are now. It is for an App for which [App.Follow] was
// not called. Calls must not overlap.
func (a *App) Reread() error { return a.reload(a.Config) }

// applied records that cfg was applied, and remembers it as the current config.
func (r *reloader) applied(by string, cfg *config.Config, text []byte) {
	if r.record != nil {
		r.record(configChange{by, r.current, cfg, r.text, text})
	}
	r.current, r.text = cfg, text
}

// storedIn returns a text that changes when a stored program of the config changes. It returns "" if their folder cannot be
// read.
func storedIn(cfg *config.Config) string {
	folder, _ := programFolder(cfg)
	if folder == "" {
		return ""
	}
	return programs.Print(folder)
}

// reload applies the file, or logs and returns the reason why it refuses the file. If the file cannot be loaded, reload tries
// again for up to settleTime; if ctx ends meanwhile, it returns the error of ctx. A reload is forced if somebody has asked for
// it, or if the lock file or a file that the config refers to has changed. Only a forced reload applies a file that equals the
// current config.
func (r *reloader) reload(ctx context.Context, by string, forced bool) error {
	patience := time.NewTimer(settleTime)
	defer patience.Stop()
	for {
		// The fingerprints are taken before the load, so that a write during the load is noticed as another change. After the load,
		// the method follow adds the fingerprints of files to which the config newly refers.
		r.seen, r.beside = lookAt(r.file.Path, fingerprint{}), r.lookBeside(r.files)
		text, _ := os.ReadFile(r.file.Path)
		cfg, err := r.load()
		r.follow(cfg, err)
		if err == nil {
			if !forced && reflect.DeepEqual(r.current, cfg) {
				return nil
			}
			stored := storedIn(cfg) // before the programs are read, so that a later change is noticed
			if err := r.apply(cfg); err != nil {
				r.logRefusal(err)
				return err
			}
			r.stored = stored
			r.applied(by, cfg, text)
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

// follow notes which files the config refers to, so that their changes are detected. It does so even if the config was refused for
// faults in it: the config may become valid when one of these files changes. After any other error, r.files stays as it was.
func (r *reloader) follow(cfg *config.Config, err error) {
	if faults, ok := errors.AsType[*config.Faults](err); ok {
		r.files = faults.Referred
	} else if err == nil {
		r.files = cfg.Referred
	}
	for _, path := range r.files {
		if _, known := r.beside[path]; !known {
			r.beside[path] = lookAt(path, fingerprint{})
		}
	}
	for path := range r.beside {
		if path != LockPath(r.current) && !slices.Contains(r.files, path) {
			delete(r.beside, path)
		}
	}
}

// logRefusal logs why a config is refused: each fault in it with its position, or the error because of which it could not be
// read or applied.
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

// reload applies another config, except for keys that need a restart. If it returns an error, it has changed nothing.
func (a *App) reload(to *config.Config) error {
	a.applying.Lock()
	defer a.applying.Unlock()
	before := a.current.Load()
	next, err := a.build(to, before)
	if err != nil {
		return err
	}
	a.LogWarnings(to)
	later := config.NextStart(a.Config, to)
	if to.Auth == nil && next.config.Auth != nil { // the old one stays in force, see builder.auth
		later = append(later, "auth")
	}
	if len(later) > 0 {
		a.log.Warn("config keys that take effect after a restart", "keys", later)
	}
	changes := a.swap(next)
	// Who may dial in depends on auth too: a rule of its rights may deny a principal everything.
	if !reflect.DeepEqual(before.config.Dial, to.Dial) || !reflect.DeepEqual(before.config.Auth, to.Auth) ||
		len(changes.Started)+len(changes.Stopped) > 0 {
		a.dialled.Recheck()
		a.rebuild()
	}
	a.reloaded = Reloaded{Changes: changes, Later: later, Unavailable: to.ServerFaults()}
	a.reloaded.Changed, a.reloaded.Keys = config.Changed(before.config, next.config)
	a.log.Info("config loaded again", "file", to.Path, "servers", len(to.Servers), "before", len(before.config.Servers),
		"started", changes.Started, "stopped", changes.Stopped)
	return nil
}

// Restart restarts a server with its present settings. Open calls of the server may continue as long as the config key
// shutdown_grace allows. Restart returns false if there is no such server, or if it is disabled or has a fault.
func (a *App) Restart(name string) bool {
	a.applying.Lock()
	defer a.applying.Unlock()
	now := a.current.Load()
	options := now.registry
	options.Again = name
	return len(a.Registry.Apply(now.servers, options, nil).Started) > 0
}

// Stop ends the process of a server, or the connection to it, until the server is used again. It returns false if there is no such
// server, or if it is disabled or has a fault. If the server was not running, Stop returns true all the same.
func (a *App) Stop(name string) bool {
	a.applying.Lock()
	defer a.applying.Unlock()
	now := a.current.Load()
	servers, options := slices.Clone(now.servers), now.registry
	at := slices.IndexFunc(servers, func(s registry.Server) bool { return s.Spec.Name == name })
	if at < 0 {
		return false
	}
	servers[at].Spec.Lazy, options.Again = true, name
	return len(a.Registry.Apply(servers, options, nil).Stopped) > 0
}

// swap makes the Runtime next the current one, and ends what next does not contain any more.
//
// The servers, their filters, the rights and what must be confirmed are in the registry's snapshot, which Apply replaces as one value. A
// call reads all of these from one snapshot, so it never combines the rights of one config with the servers of another. If the server of a
// call was replaced meanwhile, the call starts again with a newer snapshot. Apply stores the Runtime right after the snapshot, so a client
// that authenticates with the new auth gets the new rights. A request whose credential was removed may get the new rights too, until the
// method end cancels the request. The tool filter and the value confirm of a group (config key groups) are read when the request begins.
// The other settings are limits, times and texts. It does no harm if a request uses some old and some new ones.
func (a *App) swap(next *Runtime) registry.Changes {
	before := a.current.Load()
	changes := a.Registry.Apply(next.servers, next.registry, func() { a.current.Store(next) })
	if a.current.Load() != next { // Close was called
		next.end(before)
		return changes
	}
	before.end(next)
	a.endDeleted(before, next)
	a.views.each((*front.Front).EndUnknown)
	a.views.drain()
	return changes
}

// fingerprint identifies the content of a file, up to fingerprintBytes. The zero fingerprint means that the file cannot be
// read, or is not a regular file.
type fingerprint struct {
	modified time.Time
	size     int64
	digest   [sha256.Size]byte
	// settled means that the file was older than youngFile when it was read. As long as its time and size stay the same, mcpx
	// does not read it again.
	settled bool
}

func (f fingerprint) same(other fingerprint) bool {
	return f.size == other.size && f.digest == other.digest
}

// lookAt returns the fingerprint of a file. previous is an earlier fingerprint of this file. If previous is settled, and the file still has
// the same time and size, lookAt returns previous without reading the file.
func lookAt(path string, previous fingerprint) fingerprint {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fingerprint{}
	}
	if previous.settled && info.ModTime().Equal(previous.modified) && info.Size() == previous.size {
		return previous
	}
	now := fingerprint{modified: info.ModTime(), size: info.Size(), settled: time.Since(info.ModTime()) > youngFile}
	f, err := os.Open(path)
	if err != nil {
		return fingerprint{}
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, io.LimitReader(f, fingerprintBytes)); err != nil {
		return fingerprint{}
	}
	digest.Sum(now.digest[:0])
	return now
}
