// Package files reads and creates files for models, in the folders that the config or the client has opened to them.
//
// A path comes from a model, and the answer of a server may have misled the model. So a path can neither leave its folder nor
// lead into hidden files and folders: those whose names begin with a dot. Opening a file never waits, for example for the
// writer of a named pipe.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBytes is the size of the largest file that is read or created, in bytes.
const maxBytes = 16 << 20

// Folders are the absolute paths of the folders in which files may be read and created. An absolute path names a file in the folder
// that contains it. A relative path may mean a file in any of the folders: the file is read in the first folder that has it, and is
// always created in the first of the folders. The zero value has no folders and refuses every path.
type Folders []string

// New returns folders without duplicates. It drops folders whose path is not absolute. It also drops the root of a
// file system, in which a path could name every file.
func New(folders ...string) Folders {
	var all Folders
	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			continue
		}
		folder = filepath.Clean(folder)
		if folder != filepath.Dir(folder) && !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// Error means that a path or its file was refused. It is written for models.
type Error struct{ Reason string }

func (e *Error) Error() string { return e.Reason }

func refused(format string, values ...any) error { return &Error{fmt.Sprintf(format, values...)} }

// Read returns the text of a file. The error is an [Error].
func (f Folders) Read(path string) (string, error) {
	places, err := f.places(path)
	if err != nil {
		return "", err
	}
	for _, at := range places {
		var text string
		text, err = at.read()
		if !errors.Is(err, fs.ErrNotExist) {
			return text, explained(err)
		}
	}
	return "", explained(err)
}

// Create writes a new file and returns its absolute path. It replaces no file and creates no folder. The error is an [Error].
func (f Folders) Create(path string, data []byte) (string, error) {
	places, err := f.places(path)
	if err != nil {
		return "", err
	}
	if len(data) > maxBytes {
		return "", refused("a file of %d bytes is too large; at most %d MB can be saved", len(data), maxBytes>>20)
	}
	at := places[0]
	err = at.create(data)
	if errors.Is(err, fs.ErrNotExist) {
		return "", refused("is in a folder that does not exist, and no folder is made; choose another")
	}
	if err != nil {
		return "", explained(err)
	}
	return filepath.Join(append([]string{at.folder}, at.parts...)...), nil
}

// place is where a path leads. It has a folder, the names of the folders below it that lead to the file, and the name of the
// file.
type place struct {
	folder string
	parts  []string
}

// places returns the places that a path may mean, at least one. It does not use the file system, except to resolve
// symbolic links in the paths of the folders.
func (f Folders) places(path string) (all []place, err error) {
	switch {
	case len(f) == 0:
		return nil, refused("no folder is open for files")
	case path == "":
		return nil, refused("the path is empty")
	}
	for _, folder := range f {
		below := path
		if filepath.IsAbs(path) {
			var inside bool
			if below, inside = within(folder, path); !inside {
				continue
			}
		}
		parts, err := split(below)
		if err != nil {
			return nil, err
		}
		all = append(all, place{folder, parts})
	}
	if len(all) == 0 {
		return nil, refused("is not in a folder that is open for files: %s", f.list())
	}
	return all, nil
}

// list names the folders, at most five of them.
func (f Folders) list() string {
	const most = 5
	if len(f) > most {
		return strings.Join(f[:most], ", ") + ", …"
	}
	return strings.Join(f, ", ")
}

// within returns the part of an absolute path that comes after the path of a folder. The path may also begin with the folder's
// actual path, in which symbolic links are resolved. inside is false if the path is not in the folder.
func within(folder, path string) (below string, inside bool) {
	if below, inside = cut(folder, path); inside {
		return below, true
	}
	actual, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", false
	}
	return cut(actual, path)
}

// cut removes the path of a folder from the beginning of a path. ok is false if the path does not begin with the folder's path. The
// rest may contain "..", which split refuses.
func cut(folder, path string) (below string, ok bool) {
	folder = filepath.FromSlash(folder)
	path = filepath.FromSlash(path)
	if len(path) <= len(folder) || !os.IsPathSeparator(path[len(folder)]) {
		return "", false
	}
	same := path[:len(folder)] == folder || runtime.GOOS == "windows" && strings.EqualFold(path[:len(folder)], folder)
	return path[len(folder)+1:], same
}

// split divides a relative path into its parts and checks each of them.
func split(path string) (parts []string, err error) {
	parts = strings.Split(filepath.ToSlash(path), "/")
	for _, part := range parts {
		why := faultOf(part)
		if why == "" && runtime.GOOS == "windows" {
			why = faultOnWindows(part)
		}
		if why != "" {
			return nil, refused("%q in the path %s", part, why)
		}
	}
	if !filepath.IsLocal(filepath.Join(parts...)) { // for example the name of a device on Windows
		return nil, refused("the path does not lie in the folder")
	}
	return parts, nil
}

// open opens the folder that directly contains the file. No folder on the way to it may be a symbolic link, since a link could lead
// to a hidden file.
func (p place) open() (*os.Root, error) {
	if info, err := os.Stat(p.folder); err != nil || !info.IsDir() { // opening a named pipe would wait
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(p.folder)
	for _, part := range p.parts[:len(p.parts)-1] {
		if err != nil {
			return nil, err
		}
		inner, failed := enter(root, part)
		_ = root.Close()
		root, err = inner, failed
	}
	return root, err
}

// enter opens a folder inside another folder. It refuses symbolic links.
func enter(root *os.Root, name string) (*os.Root, error) {
	before, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !before.IsDir():
		return nil, refused("%q in the path %s", name, isNo("folder", before))
	}
	inner, err := root.OpenRoot(name + "/.") // without the slash, opening a named pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	after, err := inner.Stat(".")
	if err == nil && !os.SameFile(before, after) { // the folder was replaced after Lstat, for example by a link
		err = refused("%q in the path has just changed", name)
	}
	if err != nil {
		_ = inner.Close()
		return nil, err
	}
	return inner, nil
}

// isNo says that a file is not of the kind that was expected.
func isNo(kind string, info fs.FileInfo) string {
	if info.Mode()&fs.ModeSymlink != 0 {
		return "is a symbolic link, and links are not followed"
	}
	return "is no " + kind
}

func (p place) read() (string, error) {
	root, err := p.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := p.parts[len(p.parts)-1]
	before, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", err
	case !before.Mode().IsRegular():
		return "", refused("%q %s", name, isNo("file", before))
	}
	file, err := root.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if after, err := file.Stat(); err != nil || !os.SameFile(before, after) || !after.Mode().IsRegular() {
		return "", refused("%q has just changed", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxBytes:
		return "", refused("is larger than %d MB", maxBytes>>20)
	case !utf8.Valid(data):
		return "", refused("is not a text in UTF-8")
	}
	return string(data), nil
}

func (p place) create(data []byte) error {
	root, err := p.open()
	if err != nil {
		return err
	}
	defer root.Close()
	name := p.parts[len(p.parts)-1]
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	made, failed := file.Stat()
	if err = errors.Join(err, failed, file.Close()); err == nil {
		return nil
	}
	if now, failed := root.Lstat(name); failed == nil && made != nil && os.SameFile(made, now) {
		_ = root.Remove(name)
	}
	return err
}

// explained turns an error of the system into an Error. The text of the system's error contains paths, which the
// Error leaves out.
func explained(err error) error {
	var own *Error
	var path *fs.PathError
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return refused("does not exist")
	case errors.Is(err, fs.ErrExist):
		return refused("exists already, and files are not replaced; choose another name")
	case errors.Is(err, fs.ErrPermission):
		return refused("access is denied")
	case errors.As(err, &path):
		err = path.Err
	}
	return refused("%s", err)
}
