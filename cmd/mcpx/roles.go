package main

import (
	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/attach"
	"mcpx/internal/jq"
	"mcpx/internal/programs"
)

// roles are the helper processes for which mcpx starts its own executable.
var roles = helper.Roles{
	proc.ReaperRole: proc.ReaperMain,
	jq.Role:         jq.Main,
	programs.Role:   programs.Main,
	attach.Role:     daemonMain,
}
