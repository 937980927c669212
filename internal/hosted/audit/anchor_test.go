package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnchor: if an attacker can change the folder of a trail, but not the anchor, Verify reports every line that they
// remove, from the beginning or the end, before a restart or after it, with or without a key, and with or without
// Keep.
func TestAnchor(t *testing.T) {
	remove := func(t *testing.T, paths ...string) {
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := func(t *testing.T, path string) (all []string) {
		before, err := parts(path)
		if err != nil || len(before) < 2 {
			t.Fatal(before, err)
		}
		for _, one := range before {
			all = append(all, one.path)
		}
		return all
	}
	cut := func(t *testing.T, path string, last int) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		if err := os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-1-last], "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, attack := range []struct {
		name string
		do   func(t *testing.T, path string)
		want string // part of a fault
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"the beginning", func(t *testing.T, path string) { remove(t, names(t, path)[0]) }, "are missing before it, by the anchor"},
		{"all renamed files", func(t *testing.T, path string) { remove(t, names(t, path)...) }, "are missing before it, by the anchor"},
		{"the running file", func(t *testing.T, path string) { remove(t, path) }, "are missing"},
		{"everything", func(t *testing.T, path string) { remove(t, append(names(t, path), path)...) }, "are missing"},
		{"the last line", func(t *testing.T, path string) { cut(t, path, 1) }, "missing"},
		{"the last lines", func(t *testing.T, path string) { cut(t, path, 2) }, "are missing"},
	} {
		for _, key := range [][]byte{nil, key} {
			for _, keep := range []int{0, 3} {
				t.Run(fmt.Sprintf("%s, key %v, keep %d", attack.name, key != nil, keep), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "audit.jsonl")
					o := Options{Anchor: anchorOf(t, path), Keys: keysOf(key), MaxBytes: 2000, Keep: keep}
					trail := open(t, path, o)
					for range 100 {
						write(t, trail, "x")
					}
					end(t, trail)
					if r := verify(t, path, key); len(r.Faults) > 0 || !r.Anchored || (r.First > 1) != (keep > 0) {
						t.Fatalf("before: %+v", r)
					}
					attack.do(t, path)
					check := func(when string) {
						r := verify(t, path, key)
						found := slices.ContainsFunc(r.Faults, func(f Fault) bool { return strings.Contains(f.Text, attack.want) })
						if found != (attack.want != "") {
							t.Errorf("%s: %+v", when, r)
						}
					}
					check("before a restart")
					for range 2 {
						trail = open(t, path, o)
						write(t, trail, "y")
						end(t, trail)
						check("after a restart")
					}
				})
			}
		}
	}
}

// TestAnchor_running: Verify also reports files that were removed while the trail was being written, even if mcpx was
// killed afterwards.
func TestAnchor_running(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Anchor: anchorOf(t, path), Keys: keysOf(key)})
	write(t, trail, "a", "b")
	trail.sync()
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Skip(err) // Windows does not rename an open file
	}
	if r, err := Verify(path, keysOf(key), anchorOf(t, path)); err != nil || len(r.Faults) == 0 {
		t.Errorf("the file is gone: %+v, %v", r, err)
	}
	trail.sync()
	write(t, trail, "c")
	trail.sync() // the trail is not closed, as if the process were killed
	r := verify(t, path, key)
	if len(r.Faults) != 1 || !strings.Contains(r.Faults[0].String(), "audit.jsonl:1: lines number 1 to 3 are missing before it") {
		t.Errorf("%+v", r)
	}
	// The operator accepts the removal while the trail is still being written.
	if err := Accept(path, keysOf(key), anchorOf(t, path)); err != nil {
		t.Fatal(err)
	}
	write(t, trail, "d")
	end(t, trail)
	if r := verify(t, path, key); len(r.Faults) > 0 || r.First != 4 {
		t.Errorf("after Accept: %+v", r)
	}
}

// TestAnchor_changed: Verify rejects an anchor written without the key, and the next run records that it was
// replaced.
func TestAnchor_changed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	at := anchorOf(t, path)
	o := Options{Anchor: at, Keys: keysOf(key)}
	end(t, open(t, path, o))
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, forged := range []string{strings.Replace(string(data), `"last":2`, `"last":1`, 1), "{}", ""} {
		if err := os.WriteFile(at, []byte(forged), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, path, key); len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Text, "cannot be used") {
			t.Errorf("%s: %+v", forged, r)
		}
	}
	end(t, open(t, path, o))
	if text, _ := os.ReadFile(path); !strings.Contains(string(text), `"anchor":"replaced"`) {
		t.Errorf("%s", text)
	}
	if r := verify(t, path, key); len(r.Faults) > 0 {
		t.Errorf("%+v", r)
	}
	// An anchor does not accept a genuine trail that was copied from another path.
	other := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, other, Options{Keys: keysOf(key)})
	write(t, trail, "a", "b", "c", "d")
	end(t, trail)
	text, _ := os.ReadFile(other)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, path, key); len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Text, "not the one that the anchor names") {
		t.Errorf("%+v", r)
	}
}
