package authserver

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"mcpx/internal/base/state"
)

// maxGrants is the most grants that are remembered for one encryption key; they take about 1 MB on disk. If an old grant is
// forgotten, its codes and refresh tokens stay valid, but mcpx does not notice if one of them is used twice.
const maxGrants = 10_000

// Grants opens the record of used tokens for the encryption key with this id. A grant is one login of one client: its
// code has the number 0, and each following refresh token the next number. Each number is valid once. A second use
// means that the token or its successor was stolen (RFC 9700, section 4.14.2). So all servers with the same key must
// share the record, and it must survive restarts.
type Grants func(id string) (state.Once, error)

// GrantsIn keeps the records in the memory of this process, and saves each in a file in folder. If folder is empty,
// nothing is saved, and the records are lost when the process ends. Safe for concurrent use.
func GrantsIn(folder string, log *slog.Logger) Grants {
	var mu sync.Mutex
	opened := make(map[string]state.Once)
	return func(id string) (state.Once, error) {
		mu.Lock()
		defer mu.Unlock()
		if opened[id] != nil {
			return opened[id], nil
		}
		if folder == "" {
			log.Warn("no folder to keep used logins in: they are forgotten when mcpx ends")
			opened[id] = state.NewOnce(maxGrants, log)
			return opened[id], nil
		}
		path := filepath.Join(folder, "front-"+id+".json")
		grants, err := state.OpenOnce(path, maxGrants, log)
		if err != nil {
			return nil, fmt.Errorf("reading the used logins: %w; if you delete %s, used tokens become valid once more", err, path)
		}
		opened[id] = grants
		return grants, nil
	}
}
