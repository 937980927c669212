//go:build !linux

package helper

import "mcpx/internal/base/proc"

// peak returns 0: it is known only on Linux.
func peak(*proc.Process) int64 { return 0 }

func middleMain() {}
