package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stat has the fields of /proc/PID/stat that are needed.
type stat struct {
	state   string
	parent  int
	started string // in clock ticks since boot; together with the PID, it identifies a process
}

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	// The process name in parentheses may contain any characters.
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 20 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return stat{state: f[0], parent: parent, started: f[19]}, err == nil
}

// Alive reports whether the process exists and is not a zombie.
func Alive(pid int) bool {
	st, ok := readStat(pid)
	return ok && st.state != "Z" && st.state != "X"
}

// processes returns all descendants of this process, including zombies, and every living process that has
// the environment variable of [Mark].
func processes() map[string]string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := os.Getpid()
	stats := map[int]stat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, ok := readStat(pid); ok {
			stats[pid] = st
		}
	}
	out := map[string]string{}
	for pid, st := range stats {
		if pid == self || !descends(stats, pid, self) && !marked(pid, self) {
			continue
		}
		out[fmt.Sprintf("%d@%s", pid, st.started)] = fmt.Sprintf("state %s, parent %d: %s", st.state, st.parent, commandLine(pid))
	}
	return out
}

func descends(stats map[int]stat, pid, ancestor int) bool {
	for range len(stats) {
		st, ok := stats[pid]
		if !ok {
			return false
		}
		if st.parent == ancestor {
			return true
		}
		pid = st.parent
	}
	return false
}

func marked(pid, owner int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	mark := fmt.Appendf(nil, "\x00%s=%d\x00", envOwner, owner)
	return bytes.Contains(append([]byte{0}, env...), mark)
}

func commandLine(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(data) == 0 {
		return "(gone or zombie)"
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}

// killAll kills the processes that are in current, but not in earlier.
func killAll(earlier, current map[string]string) {
	for id := range current {
		if _, ok := earlier[id]; ok {
			continue
		}
		pid, _, _ := strings.Cut(id, "@")
		if n, err := strconv.Atoi(pid); err == nil && n > 1 {
			syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// openFiles returns the open file descriptors, except the ones that the Go runtime uses.
func openFiles() map[string]string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil || strings.HasSuffix(link, "/fd") || link == "anon_inode:[eventpoll]" || link == "anon_inode:[eventfd]" {
			continue
		}
		out[e.Name()+" "+link] = link
	}
	return out
}
