//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// terminate asks the process to end.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
