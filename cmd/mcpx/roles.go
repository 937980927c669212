package main

import (
	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/jq"
)

// roles are what a running mcpx starts this executable as, besides mcpx itself.
var roles = helper.Roles{
	proc.ReaperRole: proc.ReaperMain,
	jq.Role:         jq.Main,
}
