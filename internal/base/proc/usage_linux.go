package proc

import (
	"bytes"
	"os"
	"strconv"
)

// Usage returns how many processes this process has started, directly or through others, that still run, and the
// memory in bytes that they use. Processes in a role of mcpx are not included. Memory that several processes share is
// divided among them. ok is false if the operating system does not provide this.
func Usage() (processes int, memory int64, ok bool) {
	all := find(func(m member) bool { return m.state != zombie })
	children := make(map[int][]int, len(all))
	for _, m := range all {
		children[m.parent] = append(children[m.parent], m.pid)
	}
	for next := children[os.Getpid()]; len(next) > 0; next = next[1:] {
		pid := next[0]
		if inRole(pid) {
			continue
		}
		next = append(next, children[pid]...)
		processes++
		memory += memoryOf(pid)
	}
	return processes, memory, true
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
