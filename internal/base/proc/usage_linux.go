package proc

import (
	"bytes"
	"os"
	"strconv"
)

// Usage returns how much each child of this process uses, together with the descendants of the child. The keys of the map all are
// the process ids of the children. Processes in a role of mcpx, and what they have started, are not included. Memory that several
// processes share is divided among them, if the kernel says how much it is. ok is always true on Linux.
func Usage() (all map[int]Used, ok bool) {
	found := find(func(m member) bool { return m.state != zombie })
	children := make(map[int][]int, len(found))
	for _, m := range found {
		children[m.parent] = append(children[m.parent], m.pid)
	}
	all = make(map[int]Used)
	for _, child := range children[os.Getpid()] {
		var used Used
		for next := []int{child}; len(next) > 0; next = next[1:] {
			if pid := next[0]; !inRole(pid) {
				next = append(next, children[pid]...)
				used.Processes++
				used.Memory += memoryOf(pid)
			}
		}
		if used.Processes > 0 {
			all[child] = used
		}
	}
	return all, true
}

// inRole reports whether a process is mcpx itself in a role: its reaper or a helper.
func inRole(pid int) bool {
	env, _ := readProc(pid, "environ", make([]byte, 4096))
	return bytes.HasPrefix(env, []byte(RoleVar+"=")) || bytes.Contains(env, []byte("\x00"+RoleVar+"="))
}

// memoryOf returns the memory of a process in bytes: its proportional share (PSS) or, if that is unknown, its resident
// memory; 0 if the process has ended.
func memoryOf(pid int) int64 {
	rollup, _ := readProc(pid, "smaps_rollup", make([]byte, 4096))
	for line := range bytes.Lines(rollup) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kilobytes, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return kilobytes << 10
		}
	}
	statm, _ := readProc(pid, "statm", make([]byte, 256))
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
