package savings

import (
	"cmp"
	"log/slog"
	"maps"
	"sync"
	"time"

	"mcpx/internal/base/sanitize"
)

const (
	// saveAfter is how long figures stay in memory before they are written. If the process is killed, it loses the figures of this
	// time.
	saveAfter = 5 * time.Second
	// maxPending is how many different keys (server, tool, client) may wait in memory to be written, at most. There must be a limit,
	// because clients choose their names themselves.
	maxPending = 2000
	// longestName is the length, in characters, to which names of clients are cut.
	longestName = 80
)

// Book counts savings for one process, and adds them to the files of a folder. It is safe for concurrent use.
type Book struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex
	pending map[entry]*Figures
	servers map[string]Figures // the sums of each server since the start
	timer   *time.Timer        // calls save; nil if nothing is pending
	closed  bool
	failing bool // the last save failed, and this was logged

	saving sync.Mutex // held by save
}

// entry is a key and a day. The day is a number such as 20261123.
type entry struct {
	day int
	Key
}

// New returns a book that writes to the folder dir. If dir is empty, the book counts in memory only.
func New(dir string, log *slog.Logger) *Book {
	return &Book{dir: dir, log: log, pending: make(map[entry]*Figures), servers: make(map[string]Figures)}
}

// Add adds figures to the sums of a key, for the local day of date. The sums are written to the files later. Without a folder, and
// after Close, the figures are only counted for the result of the method Servers.
func (b *Book) Add(date time.Time, k Key, f Figures) {
	year, month, day := date.Local().Date()
	e := entry{year*10000 + int(month)*100 + day, k}
	b.mu.Lock()
	defer b.mu.Unlock()
	addTo(&b.servers, k.Server, f, maxServers)
	if b.dir == "" || b.closed {
		return
	}
	b.put(e, f)
	b.saveLater()
}

// put adds figures to the pending figures of the entry e. If too many entries are pending, and e is not one of them, put adds the
// figures to those of otherKey. The caller holds mu.
func (b *Book) put(e entry, f Figures) {
	if b.pending[e] == nil {
		if len(b.pending) >= maxPending {
			e.Key = otherKey
		}
		if b.pending[e] == nil {
			b.pending[e] = &Figures{}
		}
	}
	b.pending[e].Add(f)
}

// saveLater starts the timer for save, unless it runs already. The caller holds mu.
func (b *Book) saveLater() {
	if b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(saveAfter, b.save)
	}
}

// Servers returns the sums of each server since the start of the process.
func (b *Book) Servers() map[string]Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.servers)
}

// save adds the pending figures to the files. Figures that could not be written stay pending.
func (b *Book) save() {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	b.timer = nil
	pending := b.pending
	b.pending = make(map[entry]*Figures)
	b.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	days := make(map[int]*Day)
	for e, f := range pending {
		if days[e.day] == nil {
			days[e.day] = &Day{}
		}
		k := e.Key
		k.Client = cmp.Or(sanitize.Line(k.Client, longestName), "(no name)")
		days[e.day].add(k, *f)
	}
	written, err := addToFiles(b.dir, days)
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed := err != nil; failed != b.failing {
		if b.failing = failed; failed {
			b.log.Warn("the savings cannot be written; mcpx tries again", "folder", b.dir, "err", err)
		}
	}
	if err == nil {
		return
	}
	b.keep(pending, written)
	b.saveLater()
}

// keep makes figures pending again if save could not write them. The parameter written has the days whose figures save has
// written. The caller holds mu.
func (b *Book) keep(pending map[entry]*Figures, written map[int]bool) {
	for e, f := range pending {
		if !written[e.day] {
			b.put(e, *f)
		}
	}
}

// Close writes the pending figures. It gives up after the duration limit, because the disk may hang.
func (b *Book) Close(limit time.Duration) {
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends after the last file is written; if the disk hangs, it ends with the process
		defer close(done)
		b.save()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
