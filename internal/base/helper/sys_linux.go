package helper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dataSlack is how many bytes a helper may allocate over its memory limit before the kernel refuses more. So the other guards
// notice the excess before the kernel does. They report a clear error, which the kernel cannot.
const dataSlack = 16 << 20

// bindProcess makes the kernel refuse memory far over the limit, except in builds with the race detector. The Go runtime ends the
// process if the kernel refuses memory. bindProcess also sets the helper's name in ps, forbids core dumps, and makes the kernel
// kill the helper first if the machine runs out of memory. Errors are ignored, as there are other guards.
func bindProcess(name string, memory int64) {
	// prctl(PR_SET_NAME) would name the calling thread, but ps shows the name of the first thread.
	os.WriteFile("/proc/self/comm", []byte(name), 0)
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// RLIMIT_AS would also count address space that the Go runtime reserves but does not use, over a gigabyte.
	// RLIMIT_DATA counts only private writable pages.
	if mapped := statm(os.Getpid(), 5); mapped > 0 && !raceEnabled {
		limit := uint64(mapped + memory + dataSlack)
		unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
	}
}

// resident returns the resident size of a process in bytes, or 0 if it is unknown.
func resident(pid int) int64 { return statm(pid, 1) }

// statm returns the field with this index, from 0 on, of /proc/PID/statm (proc_pid_statm(5)) in bytes, or 0 if it is unknown.
func statm(pid, field int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(data)
	if err != nil || len(fields) <= field {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[field]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
