//go:build !linux

package jq

import (
	"testing"

	"mcpx/internal/base/proc"
)

// peak returns 0, since the tests cannot measure the size of a helper on this system.
func peak(*testing.T, *proc.Process, string) int64 { return 0 }

// resident returns 0, for the same reason as peak.
func resident(*testing.T, *proc.Process) int64 { return 0 }
