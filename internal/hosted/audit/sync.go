package audit

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// keepSynced puts lines on the disk within Options.syncAfter, and tries again to write
// what failed, until Close.
func (t *Trail) keepSynced() {
	for {
		select {
		case <-t.stop:
			return
		case <-t.unsynced:
		}
		timer := time.NewTimer(t.o.syncAfter)
		select {
		case <-t.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		t.sync()
	}
}

func (t *Trail) wantSync() {
	select {
	case t.unsynced <- struct{}{}:
	default:
	}
}

// sync puts the lines on the disk. Records go on meanwhile.
func (t *Trail) sync() {
	t.mu.Lock()
	file := t.file
	t.mu.Unlock()
	var err error
	if file != nil {
		if err = file.Sync(); errors.Is(err, os.ErrClosed) {
			err = nil // rotated, and synced there
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil && t.file == file && t.moved() {
		t.o.Logger.Error("somebody moved or removed the audit file; a fresh one begins", "file", t.path)
		t.file.Close()
		t.file, t.size = nil, 0
	}
	if err == nil {
		err = t.account()
	}
	if t.say(err); err != nil {
		t.wantSync()
	}
}

// moved reports whether the path of the trail names another file now, or none.
func (t *Trail) moved() bool {
	ours, err := t.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(t.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, named)
}

// syncFolder puts the name of a fresh file on the disk, where the system can.
func syncFolder(path string) {
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync()
		folder.Close()
	}
}
