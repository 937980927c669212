package main

import (
	"io"
	"os"
)

// polled does nothing here: the runtime does not poll pipes that it did not open.
func polled(in io.Reader, _ ...*os.File) (io.Reader, func()) { return in, func() {} }
