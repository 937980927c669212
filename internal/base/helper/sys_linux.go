package helper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dataSlack is how much a helper may map beyond its memory limit and its mappings at the start, so that the guards
// with a clear error trip first.
const dataSlack = 16 << 20

// bindProcess makes the kernel refuse memory far over the limit (the runtime then ends the process), names the helper
// in ps, and makes it the first victim if the machine runs out of memory. Failures are ignored, as there are other
// guards.
func bindProcess(name string, memory int64) {
	// prctl(PR_SET_NAME) names the calling thread, but ps shows the first thread.
	os.WriteFile("/proc/self/comm", []byte(name), 0)
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// RLIMIT_AS would include the address space that the runtime reserves without using it, over a gigabyte.
	// RLIMIT_DATA limits private writable pages.
	if mapped := statm(os.Getpid(), 5); mapped > 0 && !raceEnabled {
		limit := uint64(mapped + memory + dataSlack)
		unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
	}
}

// resident is the resident size of a process in bytes; 0 if unknown.
func resident(pid int) int64 { return statm(pid, 1) }

// statm returns a field of /proc/PID/statm (proc_pid_statm(5)) in bytes; 0 if unknown.
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
