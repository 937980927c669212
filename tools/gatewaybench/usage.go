package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what the processes of a gateway use, without the servers behind it.
type usage struct {
	// memory is in bytes: the sum of each process's share of memory (PSS), or of its resident memory if the share is unknown.
	memory int64
	cpu    time.Duration // since the start of the processes, in steps of 10 ms
}

type process struct {
	pid, parent int
	name        string
	cpu         time.Duration
}

// readProcess reads /proc/PID/stat. ok is false if the process has ended (also a zombie), or on systems other than Linux.
func readProcess(pid int) (p process, ok bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	begin, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if err != nil || begin < 0 || end < begin {
		return p, false
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 13 || fields[0] == "Z" {
		return p, false
	}
	at := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
	const tick = 10 * time.Millisecond
	return process{pid: pid, parent: int(at(1)), name: string(data[begin+1 : end]), cpu: time.Duration(at(11)+at(12)) * tick}, true
}

// descendants returns the processes with these ids, and after them all their descendants.
func descendants(roots ...int) []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	children := map[int][]process{}
	var found []process
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		p, ok := readProcess(pid)
		if !ok {
			continue
		}
		children[p.parent] = append(children[p.parent], p)
		if slices.Contains(roots, pid) {
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// ourName is the name of the servers' processes in /proc: they run this executable, and the kernel keeps 15 bytes of its name.
var ourName = func() string {
	path, _ := os.Executable() // after an error path is "", which is the name of no process
	name := filepath.Base(path)
	return name[:min(len(name), 15)]
}()

func (p process) isServer() bool { return p.name == ourName }

// useOf adds up what the processes roots and their descendants use. It leaves out servers, but not those in roots: the peer called
// direct consists of servers.
func useOf(roots ...int) (u usage) {
	all := descendants(roots...)
	for _, p := range all {
		if p.isServer() && !slices.Contains(roots, p.pid) {
			continue
		}
		u.memory += memoryOf(p.pid)
		u.cpu += p.cpu
	}
	return u
}

func memoryOf(pid int) int64 {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if data, err := os.ReadFile(filepath.Join(dir, "smaps_rollup")); err == nil {
		for line := range strings.SplitSeq(string(data), "\n") {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				n, _ := strconv.ParseInt(fields[1], 10, 64)
				return n << 10
			}
		}
	}
	data, _ := os.ReadFile(filepath.Join(dir, "statm"))
	if fields := strings.Fields(string(data)); len(fields) > 1 {
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		return n * int64(os.Getpagesize())
	}
	return 0
}
