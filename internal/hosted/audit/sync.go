package audit

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// wantSync schedules a call of the method sync within Options.syncAfter. The caller holds mu.
func (t *Trail) wantSync() {
	if t.timer == nil {
		t.timer = time.AfterFunc(t.o.syncAfter, t.sync)
	}
}

// sync syncs the lines to disk, and updates the anchor. If records were lost, it tries to write a line with their number. If the
// file was moved or removed, it starts a new file. Write may be called meanwhile.
func (t *Trail) sync() {
	t.syncing.Lock()
	defer t.syncing.Unlock()
	t.mu.Lock()
	file, seq, mac, closed := t.file, t.seq, t.mac, t.closed
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	if closed { // another process may now have the trail open, and write its anchor
		return
	}
	var err error
	if file != nil {
		if err = file.Sync(); errors.Is(err, os.ErrClosed) {
			err = nil // rotate has synced the file
		}
		if err == nil {
			t.anchor.reached(seq, mac)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.file != nil && t.file == file && t.moved() {
		t.o.Logger.Error("the audit file was moved or removed; starting a new one", "file", t.path)
		t.file.Close()
		t.file, t.size = nil, 0
	}
	if err == nil {
		err = t.writeLost()
	}
	if t.say(err); err != nil {
		t.wantSync()
	}
}

// moved reports whether the trail's path leads no longer to the file that the trail writes to.
func (t *Trail) moved() bool {
	ours, err := t.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(t.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, named)
}

// syncFolder syncs the directory entry of a new file, on systems that can do this.
func syncFolder(path string) {
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync()
		folder.Close()
	}
}
