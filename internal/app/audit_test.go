package app

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestAudit_Full: on a full disk, the hint is not to move the trail into another folder.
func TestAudit_Full(t *testing.T) {
	full := &unwritableError{"audit.file", "/var/log/audit.jsonl", &fs.PathError{Op: "write", Path: "/var/log/audit.jsonl", Err: syscall.ENOSPC}}
	if hint := full.Hint(); !strings.Contains(hint, "make room") || strings.Contains(hint, "set audit.file") {
		t.Error(hint)
	}
}
