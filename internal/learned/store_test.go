package learned

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
)

func storeIn(dir string) *Store { return New(dir, slog.New(slog.DiscardHandler)) }

const key = "0123456789abcdef0123456789abcdef"

func toolNamed(name, description string) Tool {
	raw := fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)
	return Tool{
		Server: &catalog.Server{Name: "s", Key: key},
		Tool:   &catalog.Tool{Name: name, Description: description, Raw: json.RawMessage(raw)},
	}
}

// learn makes the store learn from these results, and waits until it has.
func learn(s *Store, of Tool, results ...string) {
	for _, one := range results {
		s.Learn(of, func() ([]byte, bool) { return []byte(one), false })
		s.work.Wait()
	}
}

func wantSeen(t *testing.T, s *Store, of Tool, want string) {
	t.Helper()
	if got := s.TypeScript(of, prefix, 60); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStore_Restart: after a restart, the store still knows what it has learned, and continues to learn. If the definition of a
// tool has changed, it starts from nothing.
func TestStore_Restart(t *testing.T) {
	dir, tool := t.TempDir(), toolNamed("get", "Gets.")
	one := storeIn(dir)
	learn(one, tool, `{"id":1,"secret_of_one":"v"}`)
	one.Close(time.Minute)
	learn(one, tool, `{"closed":1}`)
	two := storeIn(dir)
	wantSeen(t, two, tool, "")
	learn(two, tool, `{"id":2,"other":[]}`)
	wantSeen(t, two, tool, "{id: number /*…*/}")
	two.Close(time.Minute)
	data, err := os.ReadFile(filepath.Join(dir, key+".shapes.json"))
	if err != nil || strings.Contains(string(data), "secret_of_one") || !strings.HasPrefix(string(data), `{"format":`) {
		t.Errorf("%v: %s", err, data)
	}
	if info, err := os.Stat(filepath.Join(dir, key+".shapes.json")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v: mode %v", err, info.Mode())
	}
	three := storeIn(dir)
	wantSeen(t, three, tool, "{id: number /*…*/}")
	changed := toolNamed("get", "Gets another.")
	wantSeen(t, three, changed, "")
	learn(three, changed, `{"n":1}`, `{"n":1}`)
	three.Close(time.Minute)
	wantSeen(t, storeIn(dir), changed, "{n: number}")
	wantSeen(t, storeIn(dir), tool, "")
}

// TestStore_Parts: what was learned in one part of the catalogue is not shown in another part. What was learned from one server
// is not shown for another server.
func TestStore_Parts(t *testing.T) {
	dir := t.TempDir()
	s, one := storeIn(dir), toolNamed("get", "")
	one.Part = "one"
	learn(s, one, `{"id":1}`, `{"id":1}`)
	two := one
	two.Part = "two"
	elsewhere := one
	elsewhere.Server = &catalog.Server{Name: "s", Key: strings.Repeat("f", 32)}
	unkept := one
	unkept.Server = &catalog.Server{Name: key}
	s.Close(time.Minute)
	for _, s := range []*Store{s, storeIn(dir)} {
		wantSeen(t, s, one, "{id: number}")
		for _, other := range []Tool{two, elsewhere, unkept} {
			wantSeen(t, s, other, "")
		}
	}
}

// TestStore_Declared: the store learns nothing about a tool that declares an output schema.
func TestStore_Declared(t *testing.T) {
	s, tool := storeIn(""), toolNamed("get", "")
	tool.Tool.OutputSchema = json.RawMessage(`{"type":"object"}`)
	if s.Due(tool) {
		t.Error("it is due")
	}
	wantSeen(t, s, tool, "")
	var none *Store
	if none.Due(toolNamed("get", "")) || none.TypeScript(toolNamed("get", ""), prefix, 60) != "" {
		t.Error("without a store something is learned")
	}
}

// TestStore_Sampled: if there are many results, the store learns from only a part of them.
func TestStore_Sampled(t *testing.T) {
	s, tool, due := storeIn(""), toolNamed("get", ""), 0
	for range 1000 {
		if s.Due(tool) {
			due++
		}
	}
	if due > 100 || due < 40 {
		t.Errorf("%d of 1000 are due", due)
	}
}

// TestStore_Bounded: a server with very many tools and keys uses only a limited amount of memory. Other tools are not removed
// as long as they are used.
func TestStore_Bounded(t *testing.T) {
	mcptest.OneGoroutine(t)
	s, used := storeIn(""), toolNamed("used", "")
	learn(s, used, `{"id":1}`, `{"id":1}`)
	var wide []string
	for i := range 120 {
		wide = append(wide, fmt.Sprintf(`"k%c%c":{"a":1,"b":2}`, 'a'+i/26, 'a'+i%26))
	}
	for i := range 2 * maxTools {
		learn(s, toolNamed(fmt.Sprint("t", i), ""), "{"+strings.Join(wide, ",")+"}")
		wantSeen(t, s, used, "{id: number}")
	}
	places := 0
	for _, one := range s.tools {
		if one.shape != nil {
			places += one.shape.places
		}
	}
	if len(s.tools) > maxTools || places > maxAllPlaces {
		t.Errorf("%d tools, %d places", len(s.tools), places)
	}
}

// TestStore_Processes: if two processes use the same folder, neither deletes what the other has learned.
func TestStore_Processes(t *testing.T) {
	dir, a, b := t.TempDir(), toolNamed("a", ""), toolNamed("b", "")
	one, two := storeIn(dir), storeIn(dir)
	learn(one, a, `{"a":1}`, `{"a":1}`, `{"a":1}`)
	learn(two, b, `{"b":1}`, `{"b":1}`)
	learn(two, a, `{"x":1}`, `{"x":1}`)
	one.Close(time.Minute)
	two.Close(time.Minute)
	wantSeen(t, storeIn(dir), a, "{a: number}")
	wantSeen(t, storeIn(dir), b, "{b: number}")
}

// TestStore_Saves: what was learned is written to disk soon, so that it is not lost if mcpx is killed.
func TestStore_Saves(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, tool := storeIn(dir), toolNamed("get", "")
		learn(s, tool, `{"id":1}`, `{"id":1}`)
		time.Sleep(saveAfter)
		synctest.Wait()
		wantSeen(t, storeIn(dir), tool, "{id: number}")
		s.Close(time.Minute)
	})
}

// TestStore_SavesAgain: if a file cannot be written, the next save tries again.
func TestStore_SavesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shapes")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	s, tool := storeIn(dir), toolNamed("get", "")
	learn(s, tool, `{"id":1}`, `{"id":1}`)
	s.save()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	s.Close(time.Minute)
	wantSeen(t, storeIn(dir), tool, "{id: number}")
}

// TestStore_Panic: a panic while the store learns from one result does not affect other results. Neither does a folder that
// cannot be written.
func TestStore_Panic(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, tool := storeIn(filepath.Join(file, "folder")), toolNamed("get", "")
	s.Learn(tool, func() ([]byte, bool) { panic("here") })
	s.Learn(tool, func() ([]byte, bool) { return nil, false })
	learn(s, tool, `{"id":1}`, `{"id":1}`)
	s.Close(time.Minute)
	wantSeen(t, s, tool, "{id: number}")
}

// BenchmarkStore measures the part that delays a call: checking whether to learn from its result, and queueing the result.
func BenchmarkStore(b *testing.B) {
	s, tool := storeIn(""), toolNamed("get", "")
	result := []byte(`{"id":1,"name":"` + strings.Repeat("x", 1000) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Due(tool) {
			s.Learn(tool, func() ([]byte, bool) { return result, false })
		}
	}
	s.work.Wait()
}
