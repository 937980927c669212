//go:build unix

package setup

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"mcpx/internal/desk/config"
)

// TestEdit_AtOnce: if several commands edit a config at the same time, no edit is lost, even if the config did not exist before.
// The same is true of the records of [Backups].
func TestEdit_AtOnce(t *testing.T) {
	sys := linux(t)
	const many = 20
	file, kept := ConfigFile{filepath.Join(sys.home(), "new", "config.json"), reading}, Backups{Dir: filepath.Join(sys.home(), "backups")}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			name := fmt.Sprint("s", i)
			err := file.Edit(func(data []byte) ([]byte, error) { return AddServer(data, name, Entry{Command: "x"}) }, nil)
			if err = errors.Join(err, kept.keep(name, &record{File: name})); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if names := ServerNames([]byte(content(t, file.Path))); len(names) != many {
		t.Errorf("the config has only %q", names)
	}
	if records, _, _, err := kept.records(); err != nil || len(records) != many {
		t.Errorf("there are only %v, %v", records, err)
	}
}

// TestEdit_Refused: an edit that fails leaves no new folder behind.
func TestEdit_Refused(t *testing.T) {
	sys := linux(t)
	file := ConfigFile{filepath.Join(sys.home(), "a", "b", "config.json"), reading}
	refused := errors.New("refused")
	err := file.Edit(func([]byte) ([]byte, error) { return []byte(`{"mcpServers": {}}`), nil }, func(*config.Config) error { return refused })
	if !errors.Is(err, refused) || exists(filepath.Join(sys.home(), "a")) {
		t.Errorf("got %v", err)
	}
}
