// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/robustio"
)

// Write replaces the file at path, with these permissions, once all data is on disk. If the folder does not exist,
// Write creates it with mode 0700. After an error, which names path, the file is unchanged.
func Write(path string, data []byte, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	temp, err := os.CreateTemp(folder, "."+filepath.Base(path)+".mcpx-*") // creates the file with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s, which was not changed: its folder: %w", path, cause(err))
	}
	_, err = temp.Write(data)
	err = errors.Join(cause(err), cause(temp.Chmod(mode)), cause(temp.Sync()), cause(temp.Close()))
	if err == nil {
		err = cause(robustio.Rename(temp.Name(), path)) // retries if another process has the file open on Windows
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("writing %s, which was not changed: %w", path, err)
	}
	return nil
}

// cause returns an error without the name of the temporary file in it, which the user does not know.
func cause(err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}
