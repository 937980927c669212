package logins

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/state"
)

const (
	// sharedTime is how long a record is kept if it does not change. A renewal of a login changes its record.
	sharedTime = 100 * 24 * time.Hour
	// leaseTime is how long a lock lasts if the process that holds it dies. No renewal of a login takes so long, even if the clocks
	// of two replicas differ by a minute.
	leaseTime = refreshTime + 70*time.Second
	// EndTime is how long [Logins.End] may take. At worst it first waits until the lock of a dead process ends, and then for the
	// authorization server.
	EndTime = leaseTime + refreshTime
	// lockPause is the time between two tries to lock a record.
	lockPause = 50 * time.Millisecond
)

// shared is a [keeper] for several processes, such as the replicas of a cluster. It stores each file as a record. The lock of a file is
// in the same record as the file's content, so a process that has written the lock has also got the newest content. A lock is a lease,
// which ends by itself if its holder dies.
type shared struct{ records state.Followed }

// sharedFile is the content of a record.
type sharedFile struct {
	Data   json.RawMessage `json:"data,omitempty"`
	Holder string          `json:"holder,omitempty"` // random, for each lock; empty if the file is not locked
	Until  int64           `json:"until,omitempty"`  // when the lease ends by itself, in Unix milliseconds
}

// recordPrefix is the beginning of the keys of all records with files.
const recordPrefix = "people."

func recordOf(file string) string { return recordPrefix + file }

func readRecord(value []byte) (f sharedFile, err error) {
	if len(value) > 0 {
		err = json.Unmarshal(value, &f)
	}
	return f, err
}

// change changes the record of a file by calling edit with its present content. If another process changes the record at the same
// time, change calls edit again.
func (s *shared) change(ctx context.Context, file string, edit func(f *sharedFile) error) error {
	return s.records.Change(ctx, recordOf(file), func(old []byte) ([]byte, time.Time, error) {
		f, err := readRecord(old)
		if err == nil {
			err = edit(&f)
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		value, err := json.Marshal(f)
		return value, time.Now().Add(sharedTime), err
	})
}

func (s *shared) stamp(file string) stamp {
	value, err := s.records.Get(recordOf(file))
	f, bad := readRecord(value)
	switch {
	case errors.Is(err, state.ErrUnknown), err == nil && bad == nil && f.Data == nil:
		return stamp{absent: true}
	case err != nil || bad != nil:
		return stamp{}
	}
	return stamp{size: int64(len(f.Data)), sum: sha256.Sum256(f.Data)}
}

var errHeld = errors.New("another process has locked it")

func (s *shared) lock(ctx context.Context, file string) (unlock func(), err error) {
	holder := rand.Text()
	for {
		now := time.Now()
		err := s.change(ctx, file, func(f *sharedFile) error {
			if f.Holder != "" && now.UnixMilli() < f.Until {
				return errHeld
			}
			f.Holder, f.Until = holder, now.Add(leaseTime).UnixMilli()
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if delay.Sleep(ctx, lockPause); ctx.Err() != nil {
			return nil, fmt.Errorf("waiting for another mcpx that uses this login: %w", ctx.Err())
		}
	}
	return func() {
		ctx, cancel := detached(ctx)
		defer cancel()
		_ = s.change(ctx, file, func(f *sharedFile) error { // if this fails, the lease ends by itself
			if f.Holder != holder {
				return errHeld
			}
			f.Holder, f.Until = "", 0
			return nil
		})
	}, nil
}

func (s *shared) read(_ context.Context, file string, v any) error {
	value, err := s.records.Get(recordOf(file))
	if errors.Is(err, state.ErrUnknown) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	f, err := readRecord(value)
	if err == nil && f.Data == nil {
		return fs.ErrNotExist
	}
	if err == nil {
		err = json.Unmarshal(f.Data, v)
	}
	if err != nil {
		return fmt.Errorf("%w: %s is damaged", errLost, file)
	}
	return nil
}

func (s *shared) write(ctx context.Context, file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.change(ctx, file, func(f *sharedFile) error {
		f.Data = data
		return nil
	})
}

func (s *shared) remove(file string) error {
	return s.change(context.Background(), file, func(f *sharedFile) error {
		f.Data = nil
		return nil
	})
}

func (s *shared) all() (files []string, err error) {
	var values [][]byte
	s.records.Watch(recordPrefix, func(value []byte) { values = append(values, value) })()
	for _, value := range values {
		var l login
		f, bad := readRecord(value)
		if bad == nil && f.Data != nil && json.Unmarshal(f.Data, &l) == nil && l.Principal != "" {
			files = append(files, loginFile(l.server()))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func (s *shared) whyUnsealed() error { return nil }

func (s *shared) nowhere() bool { return false }
