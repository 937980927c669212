//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// terminate asks the process to end.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }

// quit ends the process, which writes where its goroutines are.
func quit(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGQUIT) }
