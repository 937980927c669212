package jq

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

// sysProcAttr keeps a terminal's signals from a worker.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bindProcess does nothing: no limit of this kernel bounds what is mapped.
func bindProcess(int64) {}

// resident is unknown: the worker watches itself.
func resident(int) int64 { return 0 }

func signaled(s syscall.WaitStatus) bool { return s.Signaled() }
