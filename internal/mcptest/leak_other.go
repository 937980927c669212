//go:build !linux

package mcptest

import (
	"os"
	"runtime"
	"syscall"
)

// Alive reports whether the process exists. On Windows, it reports whether the process can be opened.
func Alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil
}

// processes and openFiles return nothing: leaked processes and files are detected on Linux only.
func processes() map[string]string               { return nil }
func openFiles() map[string]string               { return nil }
func killAll(earlier, current map[string]string) {}
