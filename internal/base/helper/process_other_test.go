//go:build !linux

package helper

import "mcpx/internal/base/proc"

// peak is unknown here.
func peak(*proc.Process) int64 { return 0 }

func middleMain() {}
