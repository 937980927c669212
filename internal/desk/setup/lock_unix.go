//go:build unix

package setup

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockWithin is how long lockFolder waits for another mcpx. An edit takes milliseconds, unless its disk or keyring hangs.
const lockWithin = 10 * time.Second

// lockFolder keeps every other mcpx from editing files in the folder until unlock is called or this process ends. It locks the
// folder itself, so that no file for locks lies beside the user's files. Some network file systems cannot lock folders, and the
// other mcpx may take too long. In these cases lockFolder returns without the lock, and only the comparison in [replace] protects
// the file.
func lockFolder(folder string) (unlock func()) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}
	}
	for end := time.Now().Add(lockWithin); ; time.Sleep(5 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(end) {
			return func() { _ = f.Close() } // which ends the lock
		}
	}
}
