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
	// mcpx learns from each of the first sampleAfter results of a tool, and after that from one in sampleEvery.
	sampleAfter, sampleEvery = 32, 16
	// maxTools and maxAllPlaces limit how many tools and places are in memory. The least recently used tool is removed first.
	maxTools, maxAllPlaces = 1_000, 50_000
	// maxQueue is how many results may wait to be learned from. Further results are skipped.
	maxQueue = 32
	// saveAfter is how long the store waits before it writes to disk what it has learned.
	saveAfter = 10 * time.Second
)

// Tool is a tool in one part of the catalogue. A part is what clients with the same rights and the same view see of the catalogue.
// These clients share what the store learns about the tool.
type Tool struct {
	Server *catalog.Server
	Tool   *catalog.Tool
	// Part identifies the part of the catalogue; it is empty if clients do not authenticate. What was learned in one part is not
	// shown in another.
	Part string
}

// name identifies a tool in memory. server is the key of the server's file. If the server has no file, it is the
// server's name.
type name struct {
	server string
	kept   bool // whether the server has a file
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

// tool is what is known about a tool. Store.mu guards results and used, Store.shapes guards the other fields.
type tool struct {
	results int // how many results there were since the start
	used    uint64

	raw        json.RawMessage // the definition from which the digest was made
	definition string          // the digest of the definition
	shape      *Shape          // nil if nothing is known
}

// Store has the shapes of the results of tools that declare no output schema, for the maxTools tools used last. It stores them in
// one file for each server that has a Key. Due and TypeScript may be called on a nil Store, which learns nothing. It is safe for
// concurrent use.
type Store struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex // never held during longer work or while the disk is used
	tools   map[name]*tool
	turn    uint64 // increases with each use of a tool
	queue   []lesson
	working bool // whether a goroutine is processing the queue
	closed  bool
	timer   *time.Timer // calls save; nil if nothing needs to be saved
	work    sync.WaitGroup

	shapes sync.Mutex      // locked before mu; never held while the disk is used
	loaded map[string]bool // the files that were read
	dirty  map[string]bool // the files that must be written

	saving sync.Mutex // held while a file is written; locked before shapes
}

// lesson is a result from which the store has yet to learn.
type lesson struct {
	of     Tool
	sample func() (value []byte, cut bool)
}

// New returns a store with its files in the folder dir; "" means that it stores nothing on disk.
func New(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, tools: make(map[name]*tool), loaded: make(map[string]bool), dirty: make(map[string]bool)}
}

// Due reports whether the store should learn from the result that a tool has just returned. Due counts the results, so it must be
// called exactly once for each result. If the tool has an output schema, Due returns false.
func (s *Store) Due(tool Tool) bool {
	if s == nil || tool.Tool.OutputSchema != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tool(tool.name())
	t.results++
	return sampled(t.results)
}

// sampled reports whether the store should learn from the nth result.
func sampled(n int) bool { return n <= sampleAfter || n%sampleEvery == 0 }

// tool returns what is known about a tool. If nothing is known yet, it adds an empty entry. The caller holds mu.
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

// forgetOldest removes the least recently used tool. The caller holds mu.
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

// Learn learns from a result, in the background. If maxQueue results wait already, it drops the result. sample returns the JSON
// of the result as value, or nil if the result has no JSON. If cut is true, value is only the beginning of the JSON, of at most
// maxBytes. Learn calls sample later. Until then, everything that sample refers to stays in memory, so sample should refer to
// little more than value.
func (s *Store) Learn(tool Tool, sample func() (value []byte, cut bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.queue) >= maxQueue {
		return
	}
	s.queue = append(s.queue, lesson{tool, sample})
	if !s.working {
		s.working = true
		s.work.Go(s.learn) // ends when the queue is empty
	}
}

// learn learns from the results in the queue. It returns when the queue is empty.
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

// current returns what is known about a tool. If the definition of the tool has changed, its shape is removed first. The caller
// holds shapes.
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

// bound removes the least recently used tools until all shapes together have at most maxAllPlaces places, or one tool is left.
// The caller holds shapes.
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

// TypeScript returns the shape of a tool's results as a TypeScript type, or "" if too little is known. The prefix and the type
// together have at most limit tokens.
func (s *Store) TypeScript(tool Tool, prefix string, limit int) string {
	if s == nil || tool.Tool.OutputSchema != nil {
		return ""
	}
	defer s.locked(tool).Unlock()
	if t := s.current(tool); t.shape != nil {
		return t.shape.TypeScript(prefix, limit)
	}
	return ""
}

// path returns the path of the file for a server. The package registry deletes files that were not used for a long time.
func (s *Store) path(server string) string { return filepath.Join(s.dir, server+".shapes.json") }

// locked locks the mutex shapes and returns it. If the server of the tool is used for the first time, locked first reads the
// server's file.
func (s *Store) locked(tool Tool) *sync.Mutex {
	s.shapes.Lock()
	n := tool.name()
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

// save writes the files that are marked as dirty.
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
			s.shapes.Lock()
			s.dirty[server] = true // the next save tries again, at the latest that of Close
			s.shapes.Unlock()
		}
	}
}

// encode returns the tools for the file of a server, the most recently used first. The caller holds shapes.
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

// merged combines tools with stored, the tools that are already in the file because another process may have written it. If a tool
// is only in stored, merged adds it. If a tool is in both, the one in tools stays, unless the one in stored has the same definition
// and was learned from more results.
func merged(tools, stored []toolOf) []toolOf {
	for _, one := range stored {
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

// Close learns from the results that are still waiting and saves what was learned. It waits for at most the duration limit,
// because the disk may hang. Afterwards the store learns nothing.
func (s *Store) Close(limit time.Duration) {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends after the last file was written, or with the process if the disk hangs
		defer close(done)
		s.work.Wait()
		s.save()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
