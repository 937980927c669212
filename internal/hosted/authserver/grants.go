package authserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

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

// all opens the records for several keys, as one.
func (g Grants) all(ids []string) (state.Once, error) {
	var all records
	for _, id := range ids {
		one, err := g(id)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// records implements [state.Once] on the records of several keys. What was used or ended under an old key stays so under the
// new one, and each change goes to all records, so that it is still known once the old key is gone. A replica whose config has
// only one of the keys shares the record of that key.
type records []state.Once

// Redeem implements [state.Once]. After a second use, every record ends the name.
func (all records) Redeem(ctx context.Context, name string, number int, until time.Time) (fresh bool, err error) {
	fresh = true
	for _, one := range all {
		first, err := one.Redeem(ctx, name, number, until)
		if err != nil {
			return false, err
		}
		fresh = fresh && first
	}
	if !fresh {
		err = all.End(ctx, name, until)
	}
	return fresh, err
}

// End implements [state.Once].
func (all records) End(ctx context.Context, name string, until time.Time) error {
	for _, one := range all {
		if err := one.End(ctx, name, until); err != nil {
			return err
		}
	}
	return nil
}

// Standing implements [state.Once].
func (all records) Standing(ctx context.Context, name string) context.Context {
	for _, one := range all {
		if ctx = one.Standing(ctx, name); ctx == nil {
			return nil
		}
	}
	return ctx
}
