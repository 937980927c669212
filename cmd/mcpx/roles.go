package main

import (
	_ "mcpx" // if MCPX_ROLE is set, its init function makes this process a helper
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are tasks for which mcpx starts its own executable again. Here, that is the daemon; package mcpx has the tasks of helpers.
var roles = helper.Roles{attach.Role: daemonMain}
