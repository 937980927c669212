package main

import (
	_ "mcpx" // its init plays the roles of the reaper, of filters and of programs
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are the roles of the executable beside those of package mcpx.
var roles = helper.Roles{attach.Role: daemonMain}
