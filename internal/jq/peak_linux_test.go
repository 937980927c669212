package jq

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"mcpx/internal/base/proc"
)

// peak returns the largest resident size that a helper has had, in bytes. If a limit ended the helper, the size
// comes from the parent's record of the process.
func peak(t *testing.T, h *proc.Process, outcome string) int64 {
	t.Helper()
	if outcome == "time" || outcome == "memory" {
		<-h.Done()
		return h.State().SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	return status(t, h, "VmHWM:")
}

// resident is the resident size of a helper that runs, in bytes.
func resident(t *testing.T, h *proc.Process) int64 { return status(t, h, "VmRSS:") }

// status is a size in /proc/PID/status, in bytes.
func status(t *testing.T, h *proc.Process, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field)
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
