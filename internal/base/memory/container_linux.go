package memory

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// container returns the smallest memory limit of the control groups that this process is in, in bytes; 0 means no limit. It reads the
// limit once: a process that serves asks three times at its start.
var container = sync.OnceValue(func() int64 { return containerIn(os.DirFS("/")) })

// unlimited is the value from which a limit means "no limit" in control groups of version 1. These write "no limit" as the largest
// 64-bit number that is a multiple of the page size.
const unlimited = 1 << 60

// containerIn does what container does, but reads the files below root.
func containerIn(root fs.FS) (limit int64) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(groups)) {
		// In version 2 a line is 0::/path. In version 1 it is 4:memory:/path, where memory may be a list of
		// controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			at, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		// The limits of the groups above apply too. In a container, the path may be the host's; then only the root
		// group exists.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			text, err := fs.ReadFile(root, path.Join(at, group, file))
			if n, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && wrong == nil && n > 0 && n < unlimited {
				if limit == 0 || n < limit {
					limit = n
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}
