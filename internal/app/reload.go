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

	"mcpx/internal/config"
)

const (
	// watchEvery is the time between two looks at the config file.
	watchEvery = time.Second
	// A file that cannot be used is looked at again for settleTime: an editor may
	// be about to write it.
	settleTime  = time.Second
	settleEvery = 50 * time.Millisecond
	// youngFile is how long after its time of modification a file can change once
	// more without another time: some file systems count in seconds.
	youngFile = 3 * time.Second
	// mostLooked is how much of a file is read to tell whether it changed; no
	// config is as long.
	mostLooked = 64 << 20
)

// Follow puts the config file in force again after each asked and, with watch,
// when it changes, until ctx ends. A file that cannot be used is refused in the
// log, and what is in force stays.
func (a *App) Follow(ctx context.Context, load func() (*config.Config, error), asked <-chan struct{}, watch bool) {
	r := &reloader{path: a.Config.Path, current: a.Config, log: a.log, load: load, change: a.change}
	r.run(ctx, asked, watch)
}

// reloader follows one config file.
type reloader struct {
	path   string
	load   func() (*config.Config, error)
	change func(from, to *config.Config)
	log    *slog.Logger

	current *config.Config // in force
	seen    fingerprint    // of the file when it was last loaded or refused
}

// run loads the file after each asked, and with watch when it changes, until ctx
// ends.
func (r *reloader) run(ctx context.Context, asked <-chan struct{}, watch bool) {
	var ticks <-chan time.Time
	if watch {
		r.seen = fingerprint{size: -1} // so that the first look notices a change since the start
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			r.reload(ctx, true)
		case <-ticks:
			now := lookAt(r.path, r.seen)
			if now.same(r.seen) {
				r.seen = now
				continue
			}
			r.reload(ctx, false)
		}
	}
}

// reload puts the file in force, or logs why that is impossible. It waits a moment
// for a file that is empty, broken or gone. A file that equals the config in force
// counts only after a request: variables and files that it refers to may have
// changed.
func (r *reloader) reload(ctx context.Context, asked bool) {
	patience := time.NewTimer(settleTime)
	defer patience.Stop()
	for {
		r.seen = lookAt(r.path, fingerprint{}) // before it is read: a later write is another change
		cfg, err := r.load()
		if err == nil {
			if asked || !reflect.DeepEqual(r.current, cfg) {
				r.change(r.current, cfg)
				r.current = cfg
			}
			return
		}
		pause := time.NewTimer(settleEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-patience.C:
			pause.Stop()
			r.refused(err)
			return
		case <-pause.C:
		}
	}
}

// refused logs the faults of a file, each with its place.
func (r *reloader) refused(err error) {
	const message = "config refused, the one before stays in force"
	var faults *config.Faults
	if !errors.As(err, &faults) {
		r.log.Error(message, "err", err)
		return
	}
	for _, fault := range faults.List {
		r.log.Error(message, "file", faults.File, "fault", fault.String())
	}
}

// change puts another config in force, as far as that is possible at run time.
func (a *App) change(from, to *config.Config) {
	a.LogWarnings(to)
	if later := nextStart(a.Config, to); len(later) > 0 {
		a.log.Warn("config keys that count from the next start", "keys", later)
	}
	now := *to
	now.MaxMessageBytes = a.Config.MaxMessageBytes
	servers, rules := a.servers(&now, nil)
	// Three swaps, and calls go on between them. What a caller may do is not at
	// stake: rules and servers are swapped by Apply alone, as one snapshot, and a
	// call that was allowed on a server which is another now is looked up anew. The
	// other options are limits, checks and texts; any mixture of those is harmless.
	a.Executor.SetOptions(a.executorOptions(&now))
	changes := a.Registry.Apply(servers, registryOptions(&now, rules))
	a.View.SetOptions(a.viewOptions(&now))
	a.log.Info("config loaded again", "file", to.Path, "servers", len(to.Servers), "before", len(from.Servers),
		"started", changes.Started, "stopped", changes.Stopped)
}

// nextStart are the keys whose change waits for the next start.
func nextStart(at, to *config.Config) (keys []string) {
	for _, one := range []struct {
		key     string
		changed bool
	}{
		{"max_message_bytes", at.MaxMessageBytes != to.MaxMessageBytes},
		{"shutdown_grace", at.ShutdownGrace != to.ShutdownGrace},
		{"log_level", at.LogLevel != to.LogLevel},
		{"log_file", at.LogFile != to.LogFile},
		{"log_format", at.LogFormat != to.LogFormat},
	} {
		if one.changed {
			keys = append(keys, one.key)
		}
	}
	return keys
}

// fingerprint distinguishes two states of a file. It is zero for a file that cannot
// be read.
type fingerprint struct {
	modified time.Time
	size     int64
	digest   [sha256.Size]byte
	// settled says that the file was not young when it was read: with the same
	// time and size it is the same file.
	settled bool
}

func (f fingerprint) same(other fingerprint) bool {
	return f.size == other.size && f.digest == other.digest
}

// lookAt reads the fingerprint of a file. It reads the file only where time and
// size do not settle that it is as it was.
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
