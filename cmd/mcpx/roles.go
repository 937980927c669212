package main

import (
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are tasks for which mcpx starts its own executable again. Here, that is the daemon; packages with tasks for helpers have them
// in their init functions.
var roles = helper.Roles{attach.Role: daemonMain}
