//go:build unix

package httpd

import (
	"math"
	"syscall"
)

// openFiles returns how many files this process may have open; 0 if it is not known. It is the hard limit (ulimit -Hn), to which Go
// raises the soft limit.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Max), math.MaxInt32))
}
