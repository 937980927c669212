package audit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// part is a renamed file of a trail.
type part struct {
	path   string
	number uint64
}

// parts lists the renamed files of a trail, oldest first.
func parts(path string) ([]part, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var all []part
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), filepath.Base(path)+".")
		number, err := strconv.ParseUint(digits, 10, 64)
		if ok && err == nil && len(digits) >= 6 && number > 0 {
			all = append(all, part{filepath.Join(filepath.Dir(path), entry.Name()), number})
		}
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

// rotate renames the file, so that the next line starts a new file. It also removes the oldest renamed files, if there are more
// than Options.Keep. If the renaming fails, the file keeps growing.
func (t *Trail) rotate() {
	before, err := parts(t.path)
	next := uint64(1)
	if len(before) > 0 {
		next = before[len(before)-1].number + 1
	}
	if err == nil && t.file != nil {
		err = errors.Join(t.file.Sync(), t.file.Close()) // Windows cannot rename an open file
		t.file = nil
	}
	if err == nil {
		err = os.Rename(t.path, fmt.Sprintf("%s.%06d", t.path, next))
	}
	if err != nil {
		t.o.Logger.Warn("the audit file was not rotated", "file", t.path, "err", err)
		return
	}
	t.size = 0
	for i := 0; t.o.Keep > 0 && i <= len(before)-t.o.Keep; i++ {
		t.anchor.dropped(before[i].path)
		if err := os.Remove(before[i].path); err != nil {
			t.o.Logger.Warn("an old audit file was not removed", "err", err)
		}
	}
}
