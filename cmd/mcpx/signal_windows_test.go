package main

import "os/exec"

// terminate kills the process: Windows has no signal that asks a process to end.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// quit kills the process.
func quit(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
