//go:build !linux

package jq

import (
	"testing"

	"mcpx/internal/base/proc"
)

// peak is unknown here.
func peak(*testing.T, *proc.Process, string) int64 { return 0 }

// resident is unknown here.
func resident(*testing.T, *proc.Process) int64 { return 0 }
