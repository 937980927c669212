package savings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"mcpx/internal/base/atomicfile"
)

const (
	// KeptDays is how many days the files are kept.
	KeptDays = 400
	// lockWithin is how long a process waits for another one that writes. Writing usually takes milliseconds.
	lockWithin = 5 * time.Second
	// suffix follows the date in the name of a day's file.
	suffix = ".json"
)

// addToFiles adds sums to the files of their days. Processes take turns, so that no process overwrites what another has added. written has
// the days whose files were written.
func addToFiles(dir string, days map[int]*Day) (written map[int]bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another mcpx: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // if this fails, the end of the process unlocks the file
	written = make(map[int]bool)
	for number, sums := range days {
		date := fmt.Sprintf("%04d-%02d-%02d", number/10000, number/100%100, number%100)
		path := filepath.Join(dir, date+suffix)
		day, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			prune(dir, date)
			err = nil
		}
		if err != nil {
			return written, err
		}
		day.Date = date
		day.merge(*sums)
		data, err := json.Marshal(day)
		if err == nil {
			err = atomicfile.Write(path, data, 0o600)
		}
		if err != nil {
			return written, err
		}
		written[number] = true
	}
	return written, nil
}

// read reads the file of a day. It treats a damaged file as an empty day: the file cannot be repaired, and must not stop the
// counting.
func read(path string) (day Day, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Day{}, err
	}
	if json.Unmarshal(data, &day) != nil {
		return Day{}, nil
	}
	return day, nil
}

// prune deletes the files of days that are KeptDays or more before date. It also does so in the folders of other configs, which lie
// beside dir: if such a config is gone, no other process would delete its files. In dir it also deletes temporary files that killed
// processes have left. The caller has the lock of dir.
func prune(dir, date string) {
	today, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"+suffix+".*")) // cannot fail: the pattern is valid
	for _, path := range left {
		_ = os.Remove(path)
	}
	oldest := today.AddDate(0, 0, 1-KeptDays).Format(time.DateOnly)
	all := filepath.Dir(dir)
	folders, _ := os.ReadDir(all) // files that cannot be deleted now are tried again on the next day
	for _, folder := range folders {
		for _, old := range dates(filepath.Join(all, folder.Name())) {
			if old < oldest {
				_ = os.Remove(filepath.Join(all, folder.Name(), old+suffix))
			}
		}
	}
}

// dates returns the dates that have a file, in order.
func dates(dir string) (all []string) {
	entries, _ := os.ReadDir(dir) // without the folder there are no dates
	for _, one := range entries {
		date, ok := strings.CutSuffix(one.Name(), suffix)
		if _, err := time.Parse(time.DateOnly, date); ok && err == nil {
			all = append(all, date)
		}
	}
	slices.Sort(all)
	return all
}

// Load reads the days from the date start, such as 2026-11-23, to the date end. Days without a file are left out.
func Load(dir, start, end string) (days []Day, err error) {
	for _, date := range dates(dir) {
		if date < start || date > end {
			continue
		}
		day, err := read(filepath.Join(dir, date+suffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has deleted the file
		}
		if err != nil {
			return nil, err
		}
		day.Date = date
		days = append(days, day)
	}
	return days, nil
}
