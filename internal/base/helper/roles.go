package helper

import (
	"fmt"
	"os"
	"strings"
	"time"

	"mcpx/internal/base/proc"
)

// Play runs main and exits if this process was started in the role. A package with a role of its own calls Play in an init
// function. Go initialises a package as soon as the packages that it imports are initialised. So a helper begins its work before
// half of mcpx is initialised, and saves that time and memory.
func Play(role string, main func()) {
	if own, _, _ := strings.Cut(os.Getenv(proc.RoleVar), " "); own == role {
		main()
		os.Exit(exitOK)
	}
}

// Roles has the main function of each role of this executable, by the role's name. A main function exits the process,
// or returns when the role is finished.
type Roles map[string]func()

// Play runs the role that this process was started in, and exits. In a process without a role it does nothing. Call it
// first in main and in TestMain: whatever runs before it costs each process in a role time and memory.
func (r Roles) Play() {
	for role, main := range r {
		Play(role, main)
	}
	if role, _, _ := strings.Cut(os.Getenv(proc.RoleVar), " "); role != "" {
		fmt.Fprintf(os.Stderr, "mcpx: error: %s asks for the role %q, which this program does not have\n", proc.RoleVar, role)
		os.Exit(exitUsage)
	}
}

// roleEnv returns the environment variable that makes a new process a helper; it contains the role and those limits that the
// helper needs.
func roleEnv(role string, l Limits) string {
	return fmt.Sprintf("%s=%s %d %d %d", proc.RoleVar, role, l.Time, l.Memory, l.Frame)
}

// ownRole reads the environment variable that roleEnv made for this process.
func ownRole() (role string, l Limits, err error) {
	var limit int64
	_, err = fmt.Sscanf(os.Getenv(proc.RoleVar), "%s %d %d %d", &role, &limit, &l.Memory, &l.Frame)
	l.Time = time.Duration(limit)
	return role, l, err
}
