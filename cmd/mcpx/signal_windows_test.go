package main

import "os/exec"

// terminate ends the process: there is no asking on Windows.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// quit ends the process.
func quit(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
