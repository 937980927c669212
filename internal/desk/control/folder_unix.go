//go:build unix

package control

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// folders returns the folders in which control sockets may be, each once, the best first. Commands look into all of them, because
// a desktop client may start mcpx without XDG_RUNTIME_DIR. In a container whose root cannot be written, only the folder in $TMPDIR
// can be made.
func folders() []string {
	user := strconv.Itoa(os.Getuid())
	var list []string
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		list = append(list, filepath.Join(runtime, "mcpx"))
	}
	for _, folder := range []string{"/run/user/" + user + "/mcpx", "/tmp/mcpx-" + user, filepath.Join(os.TempDir(), "mcpx-"+user)} {
		if !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	return list
}

// Own reports whether a folder belongs to this user.
func Own(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && belongs(info)
}

func belongs(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid()
}

// private returns an error unless the folder belongs to this user and no other user can enter it. In /tmp, another user may have
// created the folder.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !belongs(info) {
		return fmt.Errorf("%s must be a folder of this user, with mode 0700", folder)
	}
	return nil
}
