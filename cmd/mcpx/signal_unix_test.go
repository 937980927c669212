//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// terminate sends the process SIGTERM.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }

// quit ends the process and makes it print the stacks of its goroutines.
func quit(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGQUIT) }
