package atomicfile

import (
	"io/fs"
	"os"
)

// own does nothing: on Windows a file has its permissions from its folder.
func own(*os.File, fs.FileInfo) error { return nil }

// inherit does nothing, for the same reason as own.
func inherit(*os.File) error { return nil }
