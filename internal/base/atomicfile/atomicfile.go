// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/robustio"
)

// Write replaces the file at path, with these permissions, once all data is on disk. If the folder does not exist,
// Write creates it with mode 0700. After an error the file is unchanged.
func Write(path string, data []byte, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(folder, "."+filepath.Base(path)+".mcpx-*") // creates the file with mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = robustio.Rename(temp.Name(), path) // retries if another process has the file open on Windows
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
