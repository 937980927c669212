package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"mcpx/internal/base/atomicfile"
)

// maxFileBytes bounds what is read: files of clients hold their history too.
const maxFileBytes = 64 << 20

// read is the content of a file; existed is false where there is none.
func read(file string) (data []byte, existed bool, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d MiB", file, maxFileBytes>>20)
	}
	return data, err == nil, err
}

// ReadConfig is the content of a config of mcpx; existed is false where there is
// none.
func ReadConfig(file string) (data []byte, existed bool, err error) { return read(file) }

// WriteConfig replaces a config of mcpx, which must still be as before. A new one
// can be read by its owner only.
func WriteConfig(file string, data, before []byte, existed bool) error {
	_, err := write(file, data, before, existed)
	return err
}

// resolve follows symbolic links, to the place of a file that is not there too:
// dotfiles are often links into a repository, and must stay such.
func resolve(file string) (string, error) {
	for range 40 {
		to, err := os.Readlink(file)
		if err != nil {
			return file, nil // no link, or nothing
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(file), to)
		}
		file = to
	}
	return "", fmt.Errorf("%s: too many symbolic links", file)
}

// write replaces a file in one step: a reader sees the old or the new content.
// The file must still be as before, where it was read; made are the folders that
// had to be made, the outermost first.
func write(file string, data, before []byte, existed bool) (made []string, err error) {
	file, err = resolve(file)
	if err != nil {
		return nil, err
	}
	now, there, err := read(file)
	if err != nil {
		return nil, err
	}
	if there != existed || !bytes.Equal(now, before) {
		return nil, fmt.Errorf("%s has changed meanwhile; run the command again", file)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		if mode = info.Mode().Perm(); mode&0o200 == 0 { // a rename would replace it all the same
			return nil, fmt.Errorf("%s is read-only", file)
		}
	}
	folder := filepath.Dir(file)
	for at := folder; !exists(at) && at != filepath.Dir(at); at = filepath.Dir(at) {
		made = append([]string{at}, made...)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", file, err)
	}
	if err := atomicfile.Write(file, data, mode); err != nil {
		return nil, fmt.Errorf("writing %s, which is as it was: %w", file, cause(err))
	}
	return made, nil
}

// cause drops the name of the temporary file.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return fmt.Errorf("its folder: %w", pathErr.Err)
	}
	return err
}
