//go:build !windows

package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// own gives a new file the owner and the group of old. Only root can always do so. For any other user, the new file belongs to that
// user, even if old belonged to somebody else. It keeps the group of old if the user is a member of that group.
func own(file *os.File, old fs.FileInfo) error {
	is, err := file.Stat()
	if err != nil {
		return err
	}
	now, was := is.Sys().(*syscall.Stat_t), old.Sys().(*syscall.Stat_t)
	// Chown fails on a file system without owners, even if nothing changes.
	if now.Uid == was.Uid && now.Gid == was.Gid {
		return nil
	}
	err = file.Chown(int(was.Uid), int(was.Gid))
	switch {
	case err == nil:
		return nil
	case os.Geteuid() != 0:
		_ = file.Chown(-1, int(was.Gid))
		return nil
	}
	return fmt.Errorf("keeping its owner: %w", cause(err))
}

// inherit gives a new file the owner and the group of its folder if this process is root, as with sudo. If that fails, the file
// stays root's, and inherit returns no error.
func inherit(file *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if folder, err := os.Stat(filepath.Dir(file.Name())); err == nil {
		_ = own(file, folder)
	}
	return nil
}
