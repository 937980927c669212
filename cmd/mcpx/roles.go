package main

import (
	"mcpx/internal/base/helper"
	"mcpx/internal/desk/attach"
)

// roles are the tasks for which mcpx starts its own executable once more, as another process. This package has one such task, the
// daemon. Other packages have the tasks of their helper processes in their init functions.
var roles = helper.Roles{attach.Role: daemonMain}
