package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mcpx/internal/base/atomicfile"
)

// maxFileBytes is the size of the largest file that Read reads, in bytes. It is large because some clients keep their
// history in the same file.
const maxFileBytes = 64 << 20

// Read returns the content of a config file of a client, or of another file that mcpx writes; for the config of mcpx there is
// [config.Read]. existed is false if there is no file; then err is nil.
func Read(file string) (data []byte, existed bool, err error) {
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

// write replaces a file atomically: a reader sees either the old or the new content. If file is a symbolic link, write replaces the file
// behind it. It fails if the file has changed meanwhile: its content must be expected, and it must exist if and only if existed is true.
// made are the folders that write created, the outermost first; after an error they are gone.
func write(file string, data, expected []byte, existed bool) (made []string, err error) {
	file, err = atomicfile.Target(file)
	if err != nil {
		return nil, err
	}
	return InTurn(file, func() error { return replace(file, data, expected, existed) })
}

// replace does the work of [write] for a file that is no link. The caller has locked the folder of the file (see [InTurn]).
func replace(file string, data, expected []byte, existed bool) error {
	now, there, err := Read(file)
	if err != nil {
		return err
	}
	if there != existed || !bytes.Equal(now, expected) {
		return fmt.Errorf("%s has changed meanwhile; run the command again", file)
	}
	return atomicfile.Rewrite(file, data)
}

// InTurn calls edit, which reads and writes the file. While edit runs, no other mcpx edits files in the same folder. Without this,
// two commands at the same time would both read the old content, and the later one would overwrite the change of the first. InTurn
// creates the folder if there is none; made are the folders that it created, the outermost first. If edit fails, InTurn removes
// these folders again.
func InTurn(file string, edit func() error) (made []string, err error) {
	folder := filepath.Dir(file)
	for at := folder; !exists(at) && at != filepath.Dir(at); at = filepath.Dir(at) {
		made = slices.Insert(made, 0, at)
	}
	_ = os.MkdirAll(folder, 0o700) // if this fails, edit fails too, and says why
	unlock := lockFolder(folder)
	err = edit()
	unlock()
	if err != nil {
		removeEmpty(made)
		return nil, err
	}
	return made, nil
}

// removeEmpty removes folders that mcpx made; the first of them is the outermost. It begins with the innermost folder, and stops at
// the first one that is not empty.
func removeEmpty(made []string) {
	for _, folder := range slices.Backward(made) {
		if os.Remove(folder) != nil {
			break
		}
	}
}
