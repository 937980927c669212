package state

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFolder_EndUnwritten: Change ends a value, but cannot write the end, as on a full disk. Then Change removes the file of the
// old value, so that a restart does not bring the old value back. If this file cannot be removed either, as on a disk that has
// become read-only, Change returns ErrAway, but in this process the value has ended.
func TestFolder_EndUnwritten(t *testing.T) {
	for name, test := range map[string]struct {
		inside string // what makes it impossible to remove the file, too
		want   error
	}{
		"removable": {},
		"fixed":     {inside: "x", want: ErrAway},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := OpenFolder(dir, 10, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			change := func(value string, lasts time.Duration) error {
				return f.Change(context.Background(), "a", func([]byte) ([]byte, time.Time, error) {
					return []byte(value), time.Now().Add(lasts), nil
				})
			}
			if err := change("on", time.Hour); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "a.json") // a folder cannot be replaced by a file
			if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, test.inside), 0o700)); err != nil {
				t.Fatal(err)
			}
			if err := change("ended", time.Minute); !errors.Is(err, test.want) {
				t.Fatalf("the end: %v, want %v", err, test.want)
			}
			if value, _ := f.Get("a"); string(value) != "ended" {
				t.Errorf("in memory %q", value)
			}
			again, err := OpenFolder(dir, 10, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if value, _ := again.Get("a"); test.want == nil && string(value) != "ended" {
				t.Errorf("after a restart %q", value)
			}
		})
	}
}

// TestFolder_OtherProcess: a value that another process has stored is seen only after the next Change of its key in this process,
// even if that Change changes nothing.
func TestFolder_OtherProcess(t *testing.T) {
	dir, nothing := t.TempDir(), errors.New("nothing to change")
	open := func() *Folder {
		f, err := OpenFolder(dir, 10, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	change := func(f *Folder, value string) {
		if err := f.Change(t.Context(), "a", func([]byte) ([]byte, time.Time, error) {
			return []byte(value), time.Now().Add(time.Hour), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	one := open()
	change(one, "on")
	other := open()
	var seen []string
	other.Watch("a", func(value []byte) { seen = append(seen, string(value)) })
	change(one, "ended")
	for range 2 {
		err := other.Change(t.Context(), "a", func([]byte) ([]byte, time.Time, error) { return nil, time.Time{}, nothing })
		if !errors.Is(err, nothing) {
			t.Fatal(err)
		}
	}
	if value, _ := other.Get("a"); string(value) != "ended" || strings.Join(seen, " ") != "on ended" {
		t.Errorf("the other process has %q, and saw %q", value, seen)
	}
}
