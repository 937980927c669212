package authserver

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"mcpx/internal/base/state"
)

// maxGrants bounds what is kept of the grants of one key, about 1 MB on the disk. A second use of a token is not noticed of a grant
// that is forgotten; its tokens go on to be valid.
const maxGrants = 10_000

// Grants opens what is known of the grants whose tokens are sealed with the key of that id. A grant is one login of one client: its
// code has the number 0, and each refresh token that follows the next number. Only the newest may be used, once: an older one was
// stolen, or its successor was (RFC 9700, section 4.14.2). So all servers with one key must have the same grants, one after another
// as at the same time.
type Grants func(id string) (state.Once, error)

// GrantsIn are the grants of this process, which also keeps them in files of a folder, one for each key; without a folder they are
// forgotten when it ends. Safe for concurrent use.
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
			log.Warn("which logins were used is forgotten when mcpx ends, as there is no folder for it")
			opened[id] = state.NewOnce(maxGrants, log)
			return opened[id], nil
		}
		path := filepath.Join(folder, "front-"+id+".json")
		grants, err := state.OpenOnce(path, maxGrants, log)
		if err != nil {
			return nil, fmt.Errorf("reading which logins were used: %w; without %s tokens that were used up count once more", err, path)
		}
		opened[id] = grants
		return grants, nil
	}
}
