//go:build !windows

package files

import "syscall"

// withoutWaiting keeps a named pipe, if one has just taken the place of a file, from waiting for its writer.
const withoutWaiting = syscall.O_NONBLOCK
