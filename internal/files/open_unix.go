//go:build !windows

package files

import "syscall"

// withoutWaiting is a flag for opening a file: if a named pipe has just replaced the file, opening does not wait for
// the writer of the pipe.
const withoutWaiting = syscall.O_NONBLOCK
