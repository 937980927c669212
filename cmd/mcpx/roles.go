package main

import (
	_ "mcpx" // if MCPX_ROLE is set, its init function makes this process a helper
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are further tasks for which mcpx starts its own executable again, besides those of the helpers in package mcpx: to be the
// daemon.
var roles = helper.Roles{attach.Role: daemonMain}
