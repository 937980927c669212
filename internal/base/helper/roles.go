package helper

import (
	"fmt"
	"os"
	"strings"
	"time"

	"mcpx/internal/base/proc"
)

// Roles are the main functions of the roles of this executable, by name. A main function exits the process, or
// returns when the role is finished.
type Roles map[string]func()

// Play runs the role that this process was started in, and exits. It does nothing in a process without a role. Call
// it first in main and in TestMain: whatever runs before it costs each helper time and memory.
func (r Roles) Play() {
	role, _, _ := strings.Cut(os.Getenv(proc.RoleVar), " ")
	if role == "" {
		return
	}
	play, known := r[role]
	if !known {
		fmt.Fprintf(os.Stderr, "mcpx: error: %s asks for the role %q, which this program does not have\n", proc.RoleVar, role)
		os.Exit(exitUsage)
	}
	play()
	os.Exit(exitOK)
}

// roleEnv is the environment variable that starts a helper, with its role and limits.
func roleEnv(role string, l Limits) string {
	return fmt.Sprintf("%s=%s %d %d %d", proc.RoleVar, role, l.Time, l.Memory, l.Frame)
}

// ownRole reads what roleEnv wrote into the environment of this process.
func ownRole() (role string, l Limits, err error) {
	var limit int64
	_, err = fmt.Sscanf(os.Getenv(proc.RoleVar), "%s %d %d %d", &role, &limit, &l.Memory, &l.Frame)
	l.Time = time.Duration(limit)
	return role, l, err
}
