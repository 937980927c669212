package learned

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/catalog"
	"mcpx/internal/policy"
)

const (
	// The first results of a tool are all learned from, then one in sampleEvery.
	sampleAfter, sampleEvery = 32, 16
	// maxTools and maxAllPlaces bound what is kept in memory. What was not used for the longest time is forgotten first.
	maxTools, maxAllPlaces = 1_000, 50_000
	// maxQueue bounds the results that wait to be learned from; others are skipped.
	maxQueue = 32
	// saveAfter is how long what was learned may be in memory alone.
	saveAfter = 10 * time.Second
)

// Tool is a tool as a part of the clients sees it.
type Tool struct {
	Server *catalog.Server
	Tool   *catalog.Tool
	// Part is the part of the catalogue: what was learned in one is not shown in others.
	Part string
}

// name identifies a tool in memory. server is the key of the server's file, or its name if it has none.
type name struct {
	server string
	kept   bool // in a file
	part   string
	tool   string
}

func (t Tool) name() name {
	n := name{t.Server.Key, t.Server.Key != "", t.Part, t.Tool.OwnName()}
	if !n.kept {
		n.server = t.Server.Name
	}
	return n
}

// tool is what is kept of a tool. Store.mu guards results and used, Store.shapes the others.
type tool struct {
	results int // that were seen since the start
	used    uint64

	raw        json.RawMessage // the definition that digest was made of
	definition string          // its digest
	shape      *Shape          // nil = nothing is known
}

// Store keeps the shapes of the results of all tools, in one file for each server. A nil Store learns nothing. Safe for concurrent use.
type Store struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex // never held during work or while the disk is used
	tools   map[name]*tool
	turn    uint64 // counts the uses
	queue   []lesson
	working bool // a goroutine works through the queue
	closed  bool
	timer   *time.Timer // saves; nil = nothing is to be saved
	work    sync.WaitGroup

	shapes sync.Mutex      // locked before mu; never held while the disk is used
	loaded map[string]bool // the files that were read
	dirty  map[string]bool // the files that must be written

	saving sync.Mutex // held to write a file; locked before shapes
}

// lesson is a result that waits to be learned from.
type lesson struct {
	of     Tool
	sample func() (value []byte, cut bool)
}

// New makes a store with its files in a folder; empty = in memory alone.
func New(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, tools: make(map[name]*tool), loaded: make(map[string]bool), dirty: make(map[string]bool)}
}

// Due reports whether the next result of a tool should be learned from.
func (s *Store) Due(of Tool) bool {
	if s == nil || of.Tool.OutputSchema != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tool(of.name())
	t.results++
	return sampled(t.results)
}

// sampled reports whether the nth result is learned from.
func sampled(n int) bool { return n <= sampleAfter || n%sampleEvery == 0 }

// tool returns what is kept of a tool. The caller holds mu.
func (s *Store) tool(n name) *tool {
	t := s.tools[n]
	if t == nil {
		if len(s.tools) >= maxTools {
			s.forgetOldest()
		}
		t = &tool{}
		s.tools[n] = t
	}
	s.turn++
	t.used = s.turn
	return t
}

// forgetOldest forgets the tool that was not used for the longest time. The caller holds mu.
func (s *Store) forgetOldest() {
	var oldest name
	least := s.turn + 1
	for n, t := range s.tools {
		if t.used < least {
			oldest, least = n, t.used
		}
	}
	delete(s.tools, oldest)
}

// Learn learns from a result, in the background. sample returns its JSON or, if cut is set, at most MaxBytes of its beginning; nil if
// it has none. It must not refer to what takes much more memory.
func (s *Store) Learn(of Tool, sample func() (value []byte, cut bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.queue) >= maxQueue {
		return
	}
	s.queue = append(s.queue, lesson{of, sample})
	if !s.working {
		s.working = true
		s.work.Go(s.learn) // ends with the queue
	}
}

// learn works through the queue.
func (s *Store) learn() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.working, s.queue = false, nil
			s.mu.Unlock()
			return
		}
		next := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.mu.Unlock()
		s.learnFrom(next)
	}
}

func (s *Store) learnFrom(l lesson) {
	defer func() {
		if what := recover(); what != nil {
			s.log.Error("learning from a result", "server", l.of.Server.Name, "tool", l.of.Tool.Name, "panic", what)
		}
	}()
	value, cut := l.sample()
	if value == nil {
		return
	}
	defer s.locked(l.of).Unlock()
	t := s.current(l.of)
	if t.shape == nil {
		t.shape = &Shape{salt: t.definition}
	}
	t.shape.Add(value, cut)
	s.bound()
	if n := l.of.name(); n.kept && s.dir != "" {
		s.dirty[n.server] = true
		s.saveLater()
	}
}

// current returns what is kept of a tool, which is nothing if its definition has changed. The caller holds shapes.
func (s *Store) current(of Tool) *tool {
	s.mu.Lock()
	t := s.tool(of.name())
	s.mu.Unlock()
	if t.raw == nil || !bytes.Equal(t.raw, of.Tool.Raw) {
		if digest := policy.Digest(of.Tool); digest != t.definition {
			t.definition, t.shape = digest, nil
		}
		t.raw = of.Tool.Raw
	}
	return t
}

// bound forgets tools until there are few enough places. The caller holds shapes.
func (s *Store) bound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		places := 0
		for _, t := range s.tools {
			if t.shape != nil {
				places += t.shape.places
			}
		}
		if places <= maxAllPlaces || len(s.tools) == 1 {
			return
		}
		s.forgetOldest()
	}
}

// TypeScript returns the shape of a tool's results, as [Shape.TypeScript] does.
func (s *Store) TypeScript(of Tool, prefix string, most int) string {
	if s == nil || of.Tool.OutputSchema != nil {
		return ""
	}
	defer s.locked(of).Unlock()
	if t := s.current(of); t.shape != nil {
		return t.shape.TypeScript(prefix, most)
	}
	return ""
}

// path returns the file of a server; see the sweep of package registry, which deletes files that were not used for long.
func (s *Store) path(server string) string { return filepath.Join(s.dir, server+".shapes.json") }

// locked locks shapes, and before that reads the file of a tool's server at the first use.
func (s *Store) locked(of Tool) *sync.Mutex {
	s.shapes.Lock()
	n := of.name()
	if !n.kept || s.dir == "" || s.loaded[n.server] {
		return &s.shapes
	}
	s.shapes.Unlock()
	tools := s.read(n.server)
	s.shapes.Lock()
	if s.loaded[n.server] {
		return &s.shapes
	}
	s.loaded[n.server] = true
	for _, one := range tools {
		shape := decode(one.Results, one.Definition, one.Shape)
		if shape == nil {
			continue
		}
		s.mu.Lock()
		t := s.tool(name{n.server, true, one.Part, one.Name})
		s.mu.Unlock()
		t.definition, t.shape = one.Definition, shape
	}
	s.bound()
	return &s.shapes
}

func (s *Store) read(server string) []toolOf {
	data, err := os.ReadFile(s.path(server))
	if err != nil {
		return nil
	}
	return decodeFile(data)
}

func (s *Store) saveLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(saveAfter, s.save)
	}
}

// save writes the files that must be written.
func (s *Store) save() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	s.timer = nil
	s.mu.Unlock()
	s.shapes.Lock()
	files := make(map[string][]toolOf, len(s.dirty))
	for server := range s.dirty {
		files[server] = s.encode(server)
	}
	clear(s.dirty)
	s.shapes.Unlock()
	for server, tools := range files {
		if err := atomicfile.Write(s.path(server), encodeFile(merged(tools, s.read(server))), 0o600); err != nil {
			s.log.Warn("keeping the shapes of results", "err", err)
		}
	}
}

// encode returns the tools for the file of a server, the last used first. The caller holds shapes.
func (s *Store) encode(server string) (tools []toolOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []name
	for n, t := range s.tools {
		if n.server == server && n.kept && t.shape != nil {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b name) int { return cmp.Compare(s.tools[b].used, s.tools[a].used) })
	for _, n := range names {
		t := s.tools[n]
		tools = append(tools, toolOf{n.part, n.tool, t.definition, t.shape.results, t.shape.encode()})
	}
	return tools
}

// merged adds to the tools for a file what the file has of other tools, and of the same ones where another process has learned from
// more results.
func merged(tools, there []toolOf) []toolOf {
	for _, one := range there {
		i := slices.IndexFunc(tools, func(t toolOf) bool { return t.Name == one.Name && t.Part == one.Part })
		switch {
		case i < 0:
			tools = append(tools, one)
		case tools[i].Definition == one.Definition && tools[i].Results < one.Results:
			tools[i] = one
		}
	}
	return tools
}

// Close learns from what waits and saves it, within a time, as the disk may hang. After it the store learns nothing.
func (s *Store) Close(within time.Duration) {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the last file, or with the process if the disk hangs
		defer close(done)
		s.work.Wait()
		s.save()
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}
