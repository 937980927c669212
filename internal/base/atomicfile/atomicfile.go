// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/robustio"
)

// Write replaces the file at path by a file with this data and these permissions. It does so only once all data is on disk. The new
// file belongs to the user of this process. If the folder does not exist, Write creates it with mode 0700. After an error the old
// file is unchanged; the error names path.
func Write(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, nil)
}

// Target follows symbolic links and returns the path of the file behind them, which need not exist. If path is no link, it returns
// path. More than 40 links in a row are an error.
func Target(path string) (string, error) {
	file := path
	for range 40 {
		to, err := os.Readlink(file)
		if err != nil {
			return file, nil // file is not a link, or does not exist
		}
		if !filepath.IsAbs(to) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(file)) // a ".." in the link means the parent of this real folder
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			to = filepath.Join(folder, to)
		}
		file = to
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// Rewrite is like [Write] for a file that is the user's own, such as a config: it keeps the permissions, the owner and the group of
// the file. A new file gets mode 0600 and, if this process is root, the owner and the group of its folder. So the user can still
// read it after a command with sudo. If path is a symbolic link, such as one into a repository of dotfiles, the link stays, and
// Rewrite replaces the file behind it. If the user of this process may not write the file, the error is a [*ReadOnlyError]. Rewrite
// also removes old temporary files beside the file, which killed processes have left there.
func Rewrite(path string, data []byte) error {
	path, err := Target(path)
	if err != nil {
		return err
	}
	removeLeft(path)
	old, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return replace(path, data, 0o600, inherit)
	case err != nil: // such as a folder that this user may not enter
		return fmt.Errorf("writing %s, which was not changed: %w", path, cause(err))
	}
	// Opening the file shows whether this user may write to it. The renaming in replace would not: it only needs the right to write
	// to the folder.
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_ = file.Close()
	}
	if errors.Is(err, fs.ErrPermission) || old.Mode()&0o200 == 0 { // root can open every file
		return &ReadOnlyError{path}
	}
	return replace(path, data, old.Mode().Perm(), func(file *os.File) error { return own(file, old) })
}

// A temporary file older than abandoned belongs to no running process: no process takes that long to write one.
const abandoned = time.Hour

// removeLeft removes abandoned temporary files of the file at path. It ignores errors, because these files do no harm; they are only
// in the way when somebody lists the folder.
func removeLeft(path string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, one := range entries {
		if !strings.HasPrefix(one.Name(), "."+filepath.Base(path)+tempPart) {
			continue
		}
		if info, err := one.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(filepath.Dir(path), one.Name()))
		}
	}
}

// tempPart is in the names of temporary files: those for the file NAME are named .NAME.mcpx-*.
const tempPart = ".mcpx-"

// ReadOnlyError is the error for a file to which the user of this process may not write, or to which nobody may write.
type ReadOnlyError struct{ Path string }

func (e *ReadOnlyError) Error() string {
	return e.Path + " is read-only for this user, and was not changed"
}

// Hint says what the user can do.
func (e *ReadOnlyError) Hint() string {
	return "make the file writable, or run the command as the user it belongs to"
}

// replace does the work of [Write]. If give is not nil, it sets the owner of the new file: replace calls it while the file is still
// empty.
func replace(path string, data []byte, mode fs.FileMode, give func(*os.File) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	temp, err := os.CreateTemp(folder, "."+filepath.Base(path)+tempPart+"*") // creates the file with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s, which was not changed: its folder: %w", path, cause(err))
	}
	if give != nil {
		err = give(temp)
	}
	if err == nil {
		_, err = temp.Write(data)
	}
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

// cause returns an error without its path: that would be the path of the temporary file, which the user does not know.
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
