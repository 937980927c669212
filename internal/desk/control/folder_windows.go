package control

import (
	"fmt"
	"os"
	"path/filepath"
)

// folders returns the folder for sockets. It is in the local application data of the user, which other users cannot read.
func folders() []string {
	local, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(local, "mcpx-run")}
}

// Own reports whether the folder exists. That is enough on Windows: the folders of other users cannot be reached.
func Own(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.IsDir()
}

func private(folder string) error {
	if info, err := os.Lstat(folder); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", folder)
	}
	return nil
}
