package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var platformModes = map[string]func(){}

// exists reports whether a process runs. A zombie does not run.
func exists(pid int) bool {
	out, err := exec.Command("/bin/ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && len(out) > 0 && out[0] != 'Z'
}

// zombies counts the children of this process that are zombies.
func zombies(t *testing.T) int {
	t.Helper()
	out, err := exec.Command("/bin/ps", "-A", "-o", "ppid=,stat=").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		var ppid int
		var stat string
		fmt.Sscan(line, &ppid, &stat)
		if ppid == os.Getpid() && strings.HasPrefix(stat, "Z") {
			n++
		}
	}
	return n
}
