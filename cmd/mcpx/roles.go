package main

import (
	_ "mcpx" // its init runs this process as a helper (the reaper, a filter or a program) if MCPX_ROLE says so
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are the other roles in which mcpx starts its own executable.
var roles = helper.Roles{attach.Role: daemonMain}
