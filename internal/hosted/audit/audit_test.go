package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var key = []byte("a key of tests")

func open(t testing.TB, path string, o Options) *Trail {
	t.Helper()
	trail, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trail.Close() })
	return trail
}

func write(t testing.TB, trail *Trail, events ...string) {
	t.Helper()
	for _, event := range events {
		if err := trail.Write(event, slog.String("tool", event)); err != nil {
			t.Fatal(err)
		}
	}
}

func end(t testing.TB, trail *Trail) {
	t.Helper()
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
}

// anchorOf returns the path of the trail's anchor, in a folder next to the trail's folder.
func anchorOf(t testing.TB, path string) string {
	t.Helper()
	at, err := AnchorPath(filepath.Dir(path)+"-anchors", path)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func verify(t testing.TB, path string, key []byte) *Report {
	t.Helper()
	r, err := Verify(path, keysOf(key), anchorOf(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTrail: each run continues the trail of the run before, even after the file was renamed, and the whole trail
// verifies.
func TestTrail(t *testing.T) {
	for _, key := range [][]byte{nil, key} {
		path := filepath.Join(t.TempDir(), "folder", "audit.jsonl")
		o := Options{Keys: keysOf(key), MaxBytes: 1500, About: []slog.Attr{slog.String("version", "1")}}
		for run := range 3 {
			trail := open(t, path, o)
			for i := range 10 {
				if err := trail.Write("x", slog.Int("i", i), slog.Int("run_number", run), slog.Duration("duration", 1500*time.Millisecond), slog.Bool("b", true), slog.String("text", "a \"b\"\n\u2028 \xff <é")); err != nil {
					t.Fatal(err)
				}
			}
			end(t, trail)
		}
		r := verify(t, path, key)
		if len(r.Faults) > 0 || r.Lines != 36 || r.First != 1 || r.Last != 36 || r.Unclosed != 0 || len(r.Files) < 3 || r.Chained != (key != nil) || (r.MAC == "") != (key == nil) {
			t.Errorf("%+v", r)
		}
		for _, file := range r.Files {
			info, err := os.Stat(file)
			if err != nil || info.Size() > 1500 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
			data, _ := os.ReadFile(file)
			for line := range bytes.Lines(data) {
				var members struct {
					Time     time.Time
					Event    string
					Text     string
					Duration float64
				}
				if err := json.Unmarshal(line, &members); err != nil || time.Since(members.Time) > time.Hour || members.Event == "x" && (members.Text != "a \"b\"\n\u2028 \ufffd <é" || members.Duration != 1.5) {
					t.Fatalf("%s: %v", line, err)
				}
			}
		}
	}
}

func TestTrail_keep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Anchor: anchorOf(t, path), Keys: keysOf(key), MaxBytes: 1000, Keep: 2})
	for range 100 {
		write(t, trail, "x")
	}
	end(t, trail)
	r := verify(t, path, key)
	if len(r.Files) != 3 || len(r.Faults) > 0 || r.First < 50 || r.Last != 102 {
		t.Errorf("%+v", r)
	}
}

// TestVerify_tampering: Verify finds every manipulation of a chained trail, except removed lines at the end, and says where it
// is.
func TestVerify_tampering(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Keys: keysOf(key)})
	for i := range 10 {
		write(t, trail, fmt.Sprint("event", i))
	}
	end(t, trail)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	join := func(parts ...[]string) string {
		text := ""
		for _, part := range parts {
			text += strings.Join(part, "")
		}
		return text
	}
	for name, tt := range map[string]struct {
		text string
		want []string // the expected faults; nil if there are none
	}{
		"nothing":              {string(whole), nil},
		"changed":              {strings.Replace(string(whole), `"tool":"event4"`, `"tool":"event5"`, 1), []string{":6: the line was changed"}},
		"changed last":         {strings.Replace(string(whole), `"closed"`, `"cl0sed"`, 1), []string{":12: the line was changed"}},
		"removed":              {join(lines[:5], lines[6:]), []string{":6: line number 6 is missing before it"}},
		"removed three":        {join(lines[:2], lines[5:]), []string{":3: lines number 3 to 5 are missing before it"}},
		"repeated":             {join(lines[:5], lines[4:]), []string{":6: its number is 5"}},
		"swapped":              {join(lines[:3], lines[4:5], lines[3:4], lines[5:]), []string{":4: line number 4 is missing", ":5: its number is 4", ":6: the line before it"}},
		"inserted":             {join(lines[:5], []string{"{\"seq\":6,\"event\":\"x\"}\n"}, lines[5:]), []string{":6: the line has no HMAC", ":7: its number is 6"}},
		"noise":                {join(lines[:5], []string{"hello\n"}, lines[5:]), []string{":6: the line is not of an audit trail"}},
		"first lines removed":  {join(lines[4:]), []string{":1: lines number 1 to 4 are missing before it, and no anchor"}},
		"end in a line":        {string(whole[:len(whole)-10]), []string{":12: the line is incomplete"}},
		"another key's number": {strings.Replace(string(whole), `"seq":4`, `"seq":9`, 1), []string{":4: lines number 4 to 8 are missing", ":4: the line was changed", ":5: its number is 5", ":6: its", ":7: its", ":8: its", ":9: its"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := verify(t, path, key)
			for i, fault := range r.Faults {
				if i >= len(tt.want) || !strings.Contains(fault.String(), tt.want[i]) {
					t.Errorf("fault %s", fault)
				}
			}
			if len(r.Faults) < len(tt.want) {
				t.Errorf("%+v, want %q", r.Faults, tt.want)
			}
			if name == "first lines removed" && r.First != 5 {
				t.Errorf("%+v", r)
			}
		})
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, path, []byte("another key")); len(r.Faults) != 12 {
		t.Errorf("%+v", r)
	}
	if _, err := Verify(path, keysOf(nil), ""); !errors.Is(err, ErrNeedsKey) {
		t.Error(err)
	}
	// If the last lines were removed, Verify returns a number and an HMAC that differ from the ones noted before.
	if err := os.WriteFile(path, []byte(join(lines[:8])), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, path, key); len(r.Faults) != 0 || r.Last != 8 || r.Unclosed != 1 {
		t.Errorf("%+v", r)
	}
}

// TestVerify_plain: without a key, Verify finds removed lines, but not changed ones.
func TestVerify_plain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{})
	write(t, trail, "a", "b", "c")
	end(t, trail)
	data, _ := os.ReadFile(path)
	lines := strings.SplitAfter(string(data), "\n")
	if err := os.WriteFile(path, []byte(lines[0]+lines[1]+lines[3]+lines[4]), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, path, nil); len(r.Faults) != 1 || r.Faults[0].Line != 3 || r.Chained {
		t.Errorf("%+v", r)
	}
	if r := verify(t, path, key); len(r.Faults) < 4 {
		t.Errorf("%+v", r)
	}
}

// TestVerify_open: Verify counts the calls that began but did not end, and the runs that did not end.
func TestVerify_open(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{})
	for call, events := range [][]string{{CallBegan, CallEnded}, {CallBegan}, {CallEnded}, {CallBegan}} {
		for _, event := range events {
			if err := trail.Write(event, slog.Int("call", call+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := verify(t, path, nil); r.Open != 2 || r.Unclosed != 1 || len(r.Faults) > 0 {
		t.Errorf("%+v", r)
	}
	end(t, trail)
	if r := verify(t, path, nil); r.Open != 2 || r.Unclosed != 0 {
		t.Errorf("%+v", r)
	}
}

// TestOpen_inUse: Open refuses a file that another trail has open, and accepts it once that trail is closed.
func TestOpen_inUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{})
	_, err := Open(path, Options{})
	if used, ok := errors.AsType[*InUseError](err); !ok || !strings.Contains(used.Hint(), "its own file") {
		t.Fatal(err)
	}
	end(t, trail)
	if err := trail.Write("late"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	end(t, open(t, path, Options{}))
	if r := verify(t, path, nil); r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}

// TestOpen_refused: Open refuses a file that is not a trail or does not fit the key.
func TestOpen_refused(t *testing.T) {
	folder := t.TempDir()
	chained, plain, other := filepath.Join(folder, "chained"), filepath.Join(folder, "plain"), filepath.Join(folder, "other")
	end(t, open(t, chained, Options{Keys: keysOf(key)}))
	end(t, open(t, plain, Options{}))
	if err := os.WriteFile(other, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(folder, "changed")
	data, _ := os.ReadFile(chained)
	if err := os.WriteFile(changed, bytes.Replace(data, []byte("closed"), []byte("cl0sed"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		key  []byte
		want string
	}{
		{chained, nil, "with a key"},
		{chained, []byte("another"), "does not fit audit.key"},
		{changed, key, "does not fit audit.key"},
		{plain, key, "without a key"},
		{other, nil, "not of an audit trail"},
		{folder, nil, "not a regular file"},
	} {
		if _, err := Open(tt.path, Options{Keys: keysOf(tt.key)}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.path, err, tt.want)
		}
	}
}

// TestOpen_cut: Open removes a last line that a power failure has cut, and records this in the next line.
func TestOpen_cut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	end(t, open(t, path, Options{Keys: keysOf(key)}))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, `{"seq":3,"time":"20`)
	file.Close()
	if r := verify(t, path, key); len(r.Faults) != 1 {
		t.Errorf("%+v", r)
	}
	end(t, open(t, path, Options{Keys: keysOf(key)}))
	if r := verify(t, path, key); len(r.Faults) != 0 || r.Cut != 1 || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}

// TestTrail_moved: if the file is moved away, the trail starts a new file, and the chain continues.
func TestTrail_moved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be moved")
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Keys: keysOf(key)})
	write(t, trail, "a")
	if err := os.Rename(path, path+".000001"); err != nil {
		t.Fatal(err)
	}
	write(t, trail, "b") // goes to the moved file
	trail.sync()
	write(t, trail, "c")
	end(t, trail)
	if r := verify(t, path, key); len(r.Files) != 2 || len(r.Faults) > 0 || r.Lines != 5 {
		t.Errorf("%+v", r)
	}
}

func TestTrail_concurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Keys: keysOf(key), MaxBytes: 4000, syncAfter: time.Millisecond})
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for range 100 {
				if err := trail.Write("x"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	end(t, trail)
	if r := verify(t, path, key); len(r.Faults) > 0 || r.Lines != 802 {
		t.Errorf("%+v", r)
	}
}

func TestTrail_longTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path, Options{Keys: keysOf(key)})
	if err := trail.Write("x", slog.String("text", strings.Repeat("é", 1<<20))); err != nil {
		t.Fatal(err)
	}
	end(t, trail)
	if r := verify(t, path, key); len(r.Faults) > 0 || r.Lines != 3 {
		t.Errorf("%+v", r)
	}
}

func keysOf(key []byte) [][]byte {
	if key == nil {
		return nil
	}
	return [][]byte{key}
}
