// Package atomicfile writes files whole or not at all.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/robustio"
)

// Write replaces the file at path, with these permissions, once all of data is on the
// disk. It makes the folder, for its user alone. After an error the file is as it was.
func Write(path string, data []byte, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(folder, "."+filepath.Base(path)+".mcpx-*") // 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = robustio.Rename(temp.Name(), path) // again, where Windows has the file open
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
