package jq

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func executable() (string, error) { return os.Executable() }

// sysProcAttr keeps a console's signals from a worker, and the worker's console from the user.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
}

// bindProcess does nothing: the worker watches itself.
func bindProcess(int64) {}

// resident is unknown here.
func resident(int) int64 { return 0 }

func signaled(syscall.WaitStatus) bool { return false }
